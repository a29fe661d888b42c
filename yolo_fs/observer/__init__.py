"""The observer, a process beside the daemon.

It receives a command as text, runs it and returns its output. See docs/dev/faults.md#f64.
"""
