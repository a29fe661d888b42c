"""The crew as its record and the branch have it: read, watched over, told once."""
