"""Rounds of review, repair and research: where each stands, who is next, how many are left.

Pure.
"""
