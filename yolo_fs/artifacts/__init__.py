"""What an artifact is: which file, which lines, which subject, and whether it is right. Pure."""
