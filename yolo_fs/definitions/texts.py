"""Renders the templates of the definitions."""

from __future__ import annotations

import os
from typing import Any

from yolo_fs.system.templates import environment

_FOLDER = os.path.join(os.path.dirname(__file__), "templates")


def rendered(template: str, **values: Any) -> str:
    """Return a template rendered with the values. It is our own Markdown or TOML: nothing is
    escaped.

    Raises:
        jinja2.UndefinedError: it names a value that it is not given.
    """
    return environment(_FOLDER).get_template(template).render(values)
