"""Compiled contexts: their sources, their text, cut to a budget, and the proof of each line."""
