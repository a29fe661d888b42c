"""A company to look at: a scripted agent that plays every role, and where it works."""
