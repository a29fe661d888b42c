"""The command that goes on with a run of the company, kept with a proof that this user typed it.

It names a program: one that came with the folder would have a person start that of somebody else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from yolo_fs.system.database import is_proof, proof_of


def prove_again(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run as it is stored, with the proof of its command."""
    return {**run, "proof": proof_of(_proved_text(run))}


def command_to_go_on(run: Mapping[str, Any], default: str) -> str:
    """Return the command that goes on with a stored run; the default where nothing proves it."""
    again = run.get("again")
    return again if again and is_proof(run.get("proof"), _proved_text(run)) else default


def _proved_text(run: Mapping[str, Any]) -> str:
    return json.dumps([run.get(name) for name in ("id", "phase", "again")])
