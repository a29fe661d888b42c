"""The checker: the one way from the bytes of a file to its findings, and its callers."""
