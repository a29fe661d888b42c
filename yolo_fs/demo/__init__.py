"""Plays: scripted agents act a phase before the real daemon, in a temporary repository."""
