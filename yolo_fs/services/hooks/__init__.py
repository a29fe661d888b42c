"""Hooks in git and in the hosts of agents: put in, run, proved, taken out."""
