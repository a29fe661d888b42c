"""Makes the configuration that a test says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yolo_fs.schemas.check import check
from yolo_fs.schemas.config import Config, values_of
from yolo_fs.schemas.plain_values import shape_of


def config_from(said: Mapping[str, Any]) -> Config:
    """Return the configuration that a file with these keys would be."""
    shaped, _ = check(shape_of(Config), said)
    assert shaped is not None
    return values_of(Config, shaped.model_dump())
