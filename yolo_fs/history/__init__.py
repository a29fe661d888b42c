"""Collects the facts of every phase from the history of the branch."""
