"""Renders our templates strictly: a name without a value is an error."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import jinja2
from markupsafe import Markup

__all__ = ["Markup", "environment"]


@cache
def environment(
    folder: str, escape: Callable[[object], object] | None = None, *, is_html: bool = False
) -> jinja2.Environment:
    """Return the environment of a folder of templates.

    `escape`: applied to each value before it is printed; `is_html`: what it returns is escaped as
    HTML, unless it is markup.
    """
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=is_html,
        finalize=escape,
    )
