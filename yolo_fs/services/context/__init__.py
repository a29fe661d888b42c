"""Compiled contexts of one work tree: gathered, written, kept true and proved."""
