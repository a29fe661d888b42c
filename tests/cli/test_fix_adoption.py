"""`adopt` reports on a tree that is there, repairs and commits it once, and has nothing to do afterwards.

`YOLO_ADOPT=1000` sets how many deviating files the tree has; each has one or two good plans beside it.
"""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.test_real import FILES, PLAN_BESIDE, answer, committed, git, plant
from yolo_fs.cli.main import run


def test_a_tree_is_reported_on_adopted_and_left_alone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(14)
    count = int(os.environ.get("YOLO_ADOPT", "30"))
    planted = plant(tmp_path, [rng.choice(FILES) for _ in range(count)], monkeypatch)
    evil = ".yolo-planning/milestones/m0/phases/01-auth/critique<b>.json"
    (tmp_path / evil).write_text("{}\n")
    before = {path for path in tmp_path.rglob("*") if ".git" not in path.parts}

    told = answer(capsys, "adopt", "--json", "-C", str(tmp_path))["data"]
    assert told["committed"] == [] and told["repaired"] == []
    assert git(tmp_path, "rev-list", "--count", "HEAD").strip() == "1"

    began = time.monotonic()
    page = tmp_path.parent / "report.html"
    answer(capsys, "adopt", "--write", "--report", str(page), "--json", "-C", str(tmp_path))
    took_s = time.monotonic() - began
    right = committed(tmp_path)
    wrong = [
        f"{source.parts[-2]}/{source.name}"
        for source, path in planted
        if (path in right) != (source.parts[-2] != "hopeless")
    ]
    assert wrong == []
    assert run(["verify", "-q", "-C", str(tmp_path)]) == 0
    assert before <= {path for path in tmp_path.rglob("*") if ".git" not in path.parts}
    assert "<b>" not in page.read_text()
    with capsys.disabled():
        print(f"\n{told['files']} files adopted in {took_s:.1f} s, {len(right)} committed")

    again = answer(capsys, "adopt", "--write", "--json", "-C", str(tmp_path))["data"]
    assert (again["committed"], again["repaired"]) == ([], [])


def test_an_older_root_is_only_reported_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(tmp_path, [], monkeypatch)
    phase = tmp_path / ".vbw-planning/phases/01-auth"
    phase.mkdir(parents=True)
    (phase / "01-01.plan.jsonl").write_text(PLAN_BESIDE + "\n")
    told = answer(capsys, "adopt", "--from", ".vbw-planning", "--json", "-C", str(tmp_path))
    assert told["data"]["kinds"]["plan"]["valid"] == 1
    assert run(["adopt", "--from", ".vbw-planning", "--write", "-C", str(tmp_path)]) == 2


def test_status_counts_the_warnings_of_what_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = ("summary/good/deviation_objects__", "summary/good/documented__")
    files = [next(file for file in FILES if each in str(file)) for each in wanted]
    planted = plant(tmp_path, files, monkeypatch)
    run(["run", "--once", "-C", str(tmp_path)])
    capsys.readouterr()
    told = [
        int(line)
        for line in git(tmp_path, "log", "--format=%(trailers:key=Yolo-Warnings,valueonly)").split()
    ]
    seen = answer(capsys, "status", "--json", "-C", str(tmp_path))["data"]["warnings"]
    assert len(told) == 1 and seen == {"artifacts": 1, "findings": told[0]}

    tidy = git(tmp_path, "show", f"HEAD:{planted[1].path}")
    (tmp_path / planted[0].path).write_text(tidy)
    run(["run", "--once", "-C", str(tmp_path)])
    capsys.readouterr()
    seen = answer(capsys, "status", "--json", "-C", str(tmp_path))["data"]["warnings"]
    assert seen == {"artifacts": 0, "findings": 0}


def test_the_words_of_a_team_are_learnt_and_repair_once_they_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = next(file for file in FILES if "summary/good/documented__" in str(file))
    plant(tmp_path, [good, good], monkeypatch)
    paths = sorted(tmp_path.rglob("01-02.summary.jsonl"))
    for path in paths:
        line = json.loads(path.read_text())
        line["who_did"] = line.pop("built")
        path.write_text(json.dumps(line | {"tst": "by hand"}) + "\n")
    learnt = adopt(tmp_path, capsys, "--learn")
    assert learnt["words"] == [
        {"kind": "summary", "word": "tst=by hand", "meaning": "", "files": 2, "listed": LISTED},
        {"kind": "summary", "word": "who_did", "meaning": "built", "files": 2, "listed": []},
    ]
    aliases = learnt["aliases"]
    assert aliases == {"summary": {"who_did": "built"}}

    aliases["summary"]["tst=by hand"] = "no_tests"
    config = tmp_path / ".yolo-planning/config.json"
    config.write_text(json.dumps({"yolo_fs": {"aliases": aliases}}) + "\n")
    run(["run", "--once", "-C", str(tmp_path)])
    capsys.readouterr()
    summaries = {str(path.relative_to(tmp_path)) for path in paths}
    assert not summaries & committed(tmp_path), "an alias accepts nothing"
    assert not adopt(tmp_path, capsys, "--write", "--learn")["words"]
    assert summaries <= committed(tmp_path)
    assert json.loads(paths[0].read_text())["tst"] == "no_tests"


def test_what_the_protocol_names_means_what_it_says_whatever_a_configuration_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = next(file for file in FILES if "summary/good/documented__" in str(file))
    plant(tmp_path, [good], monkeypatch)
    [path] = tmp_path.rglob("01-02.summary.jsonl")
    line = json.loads(path.read_text())
    del line["dv"]
    path.write_text(before := json.dumps(line) + "\n")
    aliases = {"summary": {f"s={line['s']}": "failed", "dt": "dv", "tst": "dv"}}
    config = tmp_path / ".yolo-planning/config.json"
    config.write_text(json.dumps({"yolo_fs": {"aliases": aliases}}) + "\n")
    run(["fix", "--write", "-q", "-C", str(tmp_path)])
    capsys.readouterr()
    assert path.read_text() == before


LISTED = ["red_green", "green_only", "no_tests"]


def adopt(root: Path, capsys: pytest.CaptureFixture[str], *options: str) -> Any:
    return answer(capsys, "adopt", "--json", *options, "-C", str(root))["data"]
