"""Making our shapes asks no installed package for plugins, and takes nobody else's away."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("before", [None, "logfire"])
def test_no_installed_package_is_asked_for_plugins_of_shapes_and_no_child_is_told_so(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pydantic.plugin import _loader

    from yolo_fs.schemas.state import ExecutionState

    def ask(**_: object) -> None:
        raise AssertionError("the installed packages were asked")

    monkeypatch.setattr(_loader, "_plugins", None)
    monkeypatch.setattr(_loader, "entry_points", ask)
    name = "PYDANTIC_DISABLE_PLUGINS"
    monkeypatch.setenv(name, before) if before else monkeypatch.delenv(name, raising=False)
    ExecutionState.model_rebuild(force=True)

    assert os.environ.get(name) == before


def test_whoever_else_uses_pydantic_in_our_process_has_its_plugins() -> None:
    asked = """
import sys
from yolo_fs.schemas.state import ExecutionState
ExecutionState.model_rebuild()
assert "importlib.metadata" not in sys.modules
from importlib.metadata import entry_points
from pydantic.plugin._loader import entry_points as of_pydantic
found = of_pydantic(group="console_scripts")
assert of_pydantic is not entry_points
assert found and found == entry_points(group="console_scripts")
"""
    subprocess.run([sys.executable, "-c", asked], timeout=60, check=True)
