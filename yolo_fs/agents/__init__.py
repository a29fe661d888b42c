"""The crew: how its agents are, who may go on, who was asked to stop, and what stands still."""
