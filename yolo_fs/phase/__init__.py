"""Where a phase stands: its facts, the fold, its gates, and who waits for whom. Pure."""
