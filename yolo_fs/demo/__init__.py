"""A play: scripted agents act out a phase before the real daemon, in a temporary repository.

It is the file `plays/company.toml` (who does what, and what must come of it) beside a folder with
the files that its agents write. `player` runs it scene by scene, `stage` is the repository.
"""
