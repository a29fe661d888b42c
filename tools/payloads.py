"""`docs/dev/hosts-payloads.md`: what the real hosts sent, what we answer to each, and why; written from
`fixtures/hosts`, which the ordinary suite replays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent.parent / "fixtures/hosts"
_ANSWERS = {
    "nothing": "nothing",
    "context": "adds to the context",
    "deny": "refuses",
    "block": "sends back",
    "exit": "refuses with exit code 2",
}
_MOST = 70
_HEAD = """\
# What hosts sent, and what we answer

Each file of `fixtures/hosts` is a payload that Claude Code 2.1.330 or Codex 0.169.0 sent, with our answer and the reason.
`tests/cli/test_host_payloads.py` replays each of them in a repository with a committed plan and an invalid
`critique.jsonl`. [hosts.md](../hosts.md) describes the hooks.
"""


def payloads() -> str:
    """Return the page."""
    return "\n".join((_HEAD, *_tables()))


def _tables() -> Iterator[str]:
    for host in ("claude", "codex"):
        files = sorted(RECORDED.glob(f"{host}__*.json"))
        yield f"## {host}: {len(files)} payloads\n"
        yield "| sent | about | our answer | because |\n|---|---|---|---|"
        for path in files:
            case = json.loads(path.read_text(encoding="utf-8"))
            sent = path.stem.removeprefix(f"{host}__").replace("__", ", ")
            cells = (sent, _about(case["payload"]), _answer(case["expected"]), case["why"])
            yield f"| {' | '.join(cells)} |"
        yield ""


def _about(told: Mapping[str, Any]) -> str:
    """Return what a payload is about, shortened to one cell."""
    given = told.get("tool_input") or {}
    values = (given.get("command"), given.get("file_path"), given.get("notebook_path"))
    named = next((value for value in values if value), told.get("source") or told.get("reason"))
    text = " ".join(str(named or told.get("agent_type") or "").split())
    short = text if len(text) <= _MOST else f"{text[:_MOST]}…"
    return f"`{short.replace('|', chr(92) + '|').replace('`', chr(39))}`" if short else ""


def _answer(expected: Mapping[str, Any]) -> str:
    words = "; ".join(f"“{part}”" for part in expected.get("contains", ()))
    return f"{_ANSWERS[expected['kind']]} {words}".strip()
