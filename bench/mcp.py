"""What the MCP server costs an agent's host: until it has started, and each call; asked by the official client over
real stdio.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from bench import repositories
from bench.hooks import PASS
from bench.options import Options
from bench.rounds import Sample, Way, interleave
from bench.table import Table, ms, times
from bench.warm import call, program

PHASE = ".yolo-planning/phases/01-bench"
RECORD = {
    "id": "C1", "cat": "gap", "sev": "major", "q": "No rate limit?", "ctx": "login",
    "sug": "Add one", "st": "open",
}  # fmt: skip
CALLS: dict[str, dict[str, Any]] = {
    "team_status": {},
    "whose_turn": {},
    "validate_artifact": {"path": f"{PHASE}/01-00.plan.jsonl"},
    "append_record": {"path": f"{PHASE}/critique.jsonl", "record": RECORD},
}
STARTED, LISTED = "started: its tools are listed", "tools/list, again"


def run(options: Options) -> Iterator[Table]:
    """Measure servers that are started anew, each with one call of each kind."""
    small, _ = repositories.sizes(options)
    root = repositories.copy(small, options)
    samples: dict[str, Sample] = {name: Sample() for name in (STARTED, LISTED, *CALLS)}
    rounds = options.pick(5, 1)
    for _ in range(rounds):
        anyio.run(_round, root, samples)
    bare = [sys.executable, "-c", "pass"]
    base = interleave([Way(PASS, lambda _: call(bare, root, cold=True))], rounds)[PASS]
    rows = [
        (name, ms(sample.p50), ms(sample.quantile(0.95)), times(sample.p50 / base.p50))
        for name, sample in ({PASS: base} | samples).items()
    ]
    notes = (
        f"{rounds} servers, each started anew",
        "the first call imports what it needs; an append judges its whole file",
    )
    yield Table("MCP", ("", "p50 ms", "p95 ms", "x pass"), tuple(rows), notes)


async def _round(root: str, samples: dict[str, Sample]) -> None:
    began = time.monotonic()
    async with _client(root) as asked:
        await asked.list_tools()
        samples[STARTED].times_s.append(time.monotonic() - began)
        began = time.monotonic()
        await asked.list_tools()
        samples[LISTED].times_s.append(time.monotonic() - began)
        for tool, given in CALLS.items():
            began = time.monotonic()
            answer = await asked.call_tool(tool, given)
            samples[tool].times_s.append(time.monotonic() - began)
            assert not answer.is_error, (tool, answer)


@asynccontextmanager
async def _client(root: str) -> AsyncIterator[Client]:
    command, *words = program()
    server = StdioServerParameters(command=command, args=[*words, "mcp"], cwd=root)
    async with Client(stdio_client(server), mode="2026-07-28") as asked:
        yield asked
