"""Lines of a chat without what the chat put around them. Pure.

Programs that show a chat pad its lines and quote them with `>`. Neither is the writer's, so neither
a packet nor a block of text is refused for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_QUOTE = re.compile(r"(?:[ \t]*>)+ ?")


def is_quoted(line: str) -> bool:
    """Return whether a line is a quotation."""
    return _QUOTE.match(line) is not None


def without_padding(line: str) -> str:
    """Return a line without blanks at its end."""
    return line.rstrip(" \t")


def unquoted(line: str) -> str:
    """Return a line without the quotation marks that it begins with, and without padding."""
    return without_padding(_QUOTE.sub("", line, count=1) if is_quoted(line) else line)


def lines_below(lines: Iterable[str], heading: str) -> Iterator[str]:
    """Yield the lines that follow a heading, as they were before they were quoted, if it is."""
    return map(unquoted if is_quoted(heading) else without_padding, lines)
