"""Whether a handoff is complete, true and meant for its receiver. Pure."""
