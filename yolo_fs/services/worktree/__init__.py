"""Looks at the files of the work tree: which count, what state each is in, and why."""
