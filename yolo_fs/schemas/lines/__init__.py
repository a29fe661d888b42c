"""The lines of every artifact, one module per family."""
