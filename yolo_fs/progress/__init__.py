"""Runs the gates and projections: where the team stands, on disk and in history."""
