"""The daemon: watches a work tree, checks what agents write, commits it, derives state from it."""
