"""What history proves about a phase: its committed artifacts, plans and commits."""
