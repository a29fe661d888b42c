"""The facts of a phase in branch order, and what each verdict judges."""
