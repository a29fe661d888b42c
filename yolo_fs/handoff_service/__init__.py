"""Handoffs on disk: accept, read, write, override."""
