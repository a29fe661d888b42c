"""Escalations of a work tree, with their clock and those who are told."""
