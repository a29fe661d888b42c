"""The agents: their health, who may proceed, who was asked to stop, and what stalls."""
