"""The state files as the evidence has them, and how to tell our own last write from others'.

Pure.
"""
