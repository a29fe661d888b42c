"""Escalations as a state machine over an append-only log. Pure."""
