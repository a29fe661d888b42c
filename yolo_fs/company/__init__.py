"""Runs the company: starts, watches and tracks agents."""
