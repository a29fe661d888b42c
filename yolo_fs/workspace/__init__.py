"""One work tree: its planning tree, our files in it, and its settings."""
