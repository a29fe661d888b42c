"""What hooks hear, judge and answer. Pure."""
