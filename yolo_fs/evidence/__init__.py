"""The facts of a phase in the order of the branch, and what each verdict judges."""
