"""What it costs: each operation beside its physical floor and beside other tools, in the same
rounds.

Run by `scripts/bench`. Absolute times do not travel between machines; ratios of one run do.
"""
