"""From a path to its verdict, and which files have changed."""
