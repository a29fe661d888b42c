"""The daemon: watches a work tree, checks what agents write, commits it, and writes what
follows.
"""
