"""What follows: pure functions from facts to verdicts and actions; no clock, disk or git."""
