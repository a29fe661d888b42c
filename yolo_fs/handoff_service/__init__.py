"""Handoffs on disk: taken, read, written, overridden."""
