"""What real agents write, kind by kind: good files are committed, repairable ones after `fix`, hopeless ones not.

`fixtures/real/<kind>/good/<deviation>__<what>`, `…/repairable/…`, and `…/hopeless/<reason>__<what>`, whose reason
is the question that is left for the author. The deviations have the proportions of real planning trees.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.sample import turn_of
from yolo_fs.artifacts.table import by_kind
from yolo_fs.cli.main import run

REAL = Path(__file__).parents[1] / "fixtures" / "real"
FILES = sorted(REAL.glob("*/*/*"))
KINDS = sorted({path.parts[-3] for path in FILES})
GROUPS = ("good", "repairable", "hopeless")
PLAN_BESIDE = "\n".join(
    json.dumps(line)
    for line in (
        {
            "p": "01",
            "n": "01",
            "t": "Build the store",
            "w": 1,
            "d": [],
            "mh": {"tr": [], "ar": [], "kl": []},
            "obj": "There is a store.",
        },
        {"id": "T1", "tp": "auto", "a": "write", "f": ["src/s.ts"], "v": "test", "done": "green"},
    )
)


class Planted(NamedTuple):
    """One file of the corpus in a repository."""

    source: Path
    path: str
    """Relative to the repository."""


def git(root: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def plant(root: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch) -> list[Planted]:
    """Write each file into a phase of its own, in a repository where the commits that summaries name exist."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git(root, "init", "-q", "-b", "main", ".")
    git(root, "config", "user.name", "a")
    git(root, "config", "user.email", "a@b.invalid")
    git(root, "commit", "-q", "--allow-empty", "-m", "feat(01-02): T1 something")
    commit = git(root, "rev-parse", "--short=7", "HEAD").strip()
    planted = []
    for number, source in enumerate(files):
        artifact = by_kind(source.parts[-3])
        assert artifact
        name = artifact.file.format(dept="", plan="01-02")
        folder = f".yolo-planning/milestones/m{number}/phases/01-auth"
        (root / folder).mkdir(parents=True)
        data = source.read_bytes().replace(b"COMMIT1", commit.encode())
        (root / folder / name).write_bytes(data)
        os.utime(root / folder / name, (1_700_000_000, 1_700_000_000))  # nobody writes it any more
        (root / folder / "01-01.plan.jsonl").write_text(PLAN_BESIDE + "\n")
        if artifact.kind != "plan":
            beside = PLAN_BESIDE.replace('"n": "01"', '"n": "02"')
            (root / folder / "01-02.plan.jsonl").write_text(beside + "\n")
        planted.append(Planted(source, f"{folder}/{name}"))
    return planted


def committed(root: Path) -> set[str]:
    return set(git(root, "ls-tree", "-r", "--name-only", "HEAD").splitlines())


def table(planted: list[Planted], right: set[str]) -> str:
    every = Counter((each.source.parts[-3], each.source.parts[-2]) for each in planted)
    good = Counter(
        (each.source.parts[-3], each.source.parts[-2]) for each in planted if each.path in right
    )
    rows = [f"{'kind':16}" + "".join(f"{group:>14}" for group in GROUPS)]
    for kind in KINDS:
        cells = (f"{good[kind, group]}/{every[kind, group]}" for group in GROUPS)
        rows.append(f"{kind:16}" + "".join(f"{cell:>14}" for cell in cells))
    return "\n".join(rows)


def answer(capsys: pytest.CaptureFixture[str], *command: str) -> Any:
    run(list(command))
    return json.loads(capsys.readouterr().out)


def test_the_corpus_is_large_enough() -> None:
    assert len(FILES) >= 300
    assert {path.parts[-2] for path in FILES} == set(GROUPS)


@pytest.mark.timeout(400)  # some hundred files, each judged by the whole pipeline
def test_what_real_agents_write_is_committed_repaired_or_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = plant(tmp_path, turn_of(FILES, 4), monkeypatch)
    assert run(["run", "--once", "-C", str(tmp_path)]) in (0, 1)
    first = committed(tmp_path)
    capsys.readouterr()
    before = {each.path: (tmp_path / each.path).read_bytes() for each in planted}
    told = answer(capsys, "fix", "--write", "--json", "-C", str(tmp_path))
    asked: dict[str, set[str]] = {}
    for finding in told["findings"]:
        asked.setdefault(finding["path"], set()).add(finding["reason"])
    run(["run", "--once", "-C", str(tmp_path)])
    capsys.readouterr()
    second = committed(tmp_path)

    right = set()
    for source, path in planted:
        group, reason = source.parts[-2], source.name.partition("__")[0]
        if group == "good" and path in first:
            right.add(path)
        if group == "repairable" and path in second - first and path not in asked:
            right.add(path)
        if group == "hopeless" and path not in second and reason in asked.get(path, ()):
            right.add(path)
    with capsys.disabled():
        print(f"\n{table(planted, right)}")
    assert [f"{p.source.relative_to(REAL)}" for p in planted if p.path not in right] == []
    assert not answer(capsys, "fix", "--json", "-C", str(tmp_path))["data"]["repaired"]
    for source, path in planted:
        after = (tmp_path / path).read_bytes()
        if source.parts[-2] == "repairable" and source.suffix == ".jsonl":
            of = words if is_one_object_per_line(before[path]) else tokens
            lost = of(before[path]) - of(after)
            assert not lost, (source.name, lost)


def words(data: bytes) -> set[str]:
    """Return the words of every value, without those of listed values, which have synonyms."""
    found: set[str] = set()
    listed = {"s", "st", "tst", "sev", "r", "severity", "result", "status", "mode"}

    def walk(value: Any, key: str = "") -> None:
        if isinstance(value, dict):
            for name, item in value.items():
                walk(item, name)
        elif isinstance(value, list):
            for item in value:
                walk(item, key)
        elif key not in listed:
            parts = re.findall(r"[^\s;:/-]+", re.sub(r"^L(?=[0-9])", "", str(value)))
            found.update(f"{int(part)}" if part.isdigit() else part for part in parts)

    for line in data.decode("utf-8-sig").splitlines():
        if line.strip():
            walk(json.loads(line))
    return found - {"none", "wave", "None"}  # of `"d": "none"`, `"w": "wave 2"`, `"ln": null`


def tokens(data: bytes) -> set[str]:
    """Return the words of a text that is not one object per line, with those of its keys."""
    text = data.decode().replace("\\n", " ").replace("\\t", " ").replace("\\\\", "\\")
    marks = {"//", "jsonl", "True", "False", "None"}  # of comments, fences and Python
    marks |= {"findings", "tasks"}  # names of the one list that held the records
    return set(re.findall(r"""[^\s{}\[\]"'`,:]+""", text)) - marks


def is_one_object_per_line(data: bytes) -> bool:
    try:
        return all(
            isinstance(json.loads(line), dict)
            for line in data.decode("utf-8-sig").splitlines()
            if line.strip()
        )
    except ValueError:
        return False
