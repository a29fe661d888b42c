"""Rounds of review, repair and research: state of each loop, next agent, rounds left.

Pure.
"""
