"""Plays: scripted agents act out a phase before the real daemon, in a temporary repository.

Each play is a file `plays/NAME.toml` (who does what, and what must come of it) beside a folder with
the files that its agents write. `player` runs it scene by scene, `stage` is the repository.
"""
