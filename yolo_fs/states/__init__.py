"""The state files as the evidence has them, and how our last word in them is told from others'.

Pure.
"""
