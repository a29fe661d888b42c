"""What is cut says how much is left, and what shows it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolo_fs.cli.main import run
from yolo_fs.core.reasons import shortened

PHASE = ".yolo-planning/phases/01-auth"


@given(st.lists(st.from_regex(r"[a-z]{1,5}", fullmatch=True)), st.integers(1, 12))
def test_the_texts_that_are_shown_and_those_that_are_counted_are_all_of_them(
    texts: list[str], most: int
) -> None:
    shown, _, rest = shortened(texts, most, shown_by="'there'").partition(" and ")
    counted = int(rest.split()[0]) if rest else 0
    assert [text for text in shown.split(", ") if text] == texts[:most]
    assert counted == max(0, len(texts) - most)
    assert rest == "" or rest.endswith("more (see 'there')")


def test_a_task_that_is_none_is_told_how_many_tasks_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    phase = repository(tmp_path)
    header = {
        "p": "01", "n": "01", "t": "Log in", "w": 1, "d": [], "xd": [], "fm": ["src/a.py"],
        "mh": {"tr": ["it works"], "ar": [], "kl": []}, "obj": "Log in", "auto": True,
    }  # fmt: skip
    tasks = [
        {"id": f"T{number}", "tp": "auto", "a": "Do it", "f": ["src/a.py"], "v": "it works",
         "done": "it works", "spec": "as said"} | ({"td": ["T99"]} if number == 12 else {})
        for number in range(1, 13)
    ]  # fmt: skip
    lines = "".join(f"{json.dumps(line)}\n" for line in [header, *tasks])
    (phase / "01-01.plan.jsonl").write_text(lines)
    run(["validate", "-C", str(tmp_path)])
    told = next(line for line in capsys.readouterr().out.splitlines() if "T99" in line)
    assert " and 1 more" in told  # of the eleven others


def test_every_fault_of_a_refused_file_is_shown_or_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    phase = repository(tmp_path)
    (phase / "critique.jsonl").write_text('{"id":"C1"}\n')
    os.utime(phase / "critique.jsonl", (1_000_000_000, 1_000_000_000))
    monkeypatch.chdir(tmp_path)
    run(["validate", "--json"])
    faults = json.loads(capsys.readouterr().out)["data"]["errors"]
    assert faults > 2
    run(["status"])
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("    line 1 /") for line in lines) == faults
    run(["resume"])
    assert f"and {faults - 1} more (yolo-fs validate {PHASE}/critique.jsonl)" in (
        capsys.readouterr().out
    )


def repository(root: Path) -> Path:
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    run(["init", "-q", "--no-hooks", "-C", str(root)])
    phase = root / PHASE
    os.makedirs(phase)
    return phase
