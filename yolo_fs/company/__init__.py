"""Runs the company: agents are started, watched and never lost."""
