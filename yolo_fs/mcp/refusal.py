"""What a tool raises for its caller to read."""

from __future__ import annotations


class ToolRefusedError(Exception):
    """A call that cannot be answered: what is wrong with it, and what to do instead."""
