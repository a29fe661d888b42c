"""The lines of every artifact, one module per family. Source: protocol 1.3."""
