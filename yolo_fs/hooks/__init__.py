"""What hooks receive, decide and answer. Pure."""
