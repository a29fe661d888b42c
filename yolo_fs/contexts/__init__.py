"""Compiled contexts: what feeds them, how they are written, cut to their budget, and proved."""
