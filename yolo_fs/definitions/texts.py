"""Renders our templates strictly: a name without a value is an error."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import jinja2

_FOLDER = os.path.join(os.path.dirname(__file__), "templates")


@cache
def environment() -> jinja2.Environment:
    """Return the template environment. It renders our own Markdown and TOML: nothing is escaped."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def rendered(template: str, **values: Any) -> str:
    """Return a template rendered with the values.

    Raises:
        jinja2.UndefinedError: it names a value that it is not given.
    """
    return environment().get_template(template).render(values)
