"""What is written: the shape of every message, line and file of the protocol."""
