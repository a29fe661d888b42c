"""The demo: a scripted agent that plays every role, and the repository that it works in."""
