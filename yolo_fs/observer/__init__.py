"""The process beside the daemon that answers questions: the text of a command, from the text of a
request. See docs/dev/faults.md#f64.
"""
