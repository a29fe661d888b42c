"""Escalations of a work tree: their clock and their notifications."""
