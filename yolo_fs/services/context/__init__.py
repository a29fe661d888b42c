"""Compiled contexts of one work tree: what feeds them is gathered, they are written, kept true and
proved.
"""
