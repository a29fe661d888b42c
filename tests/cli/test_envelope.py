"""`envelope` writes, checks, shows and chooses; exit codes and JSON are what other programs rely on."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit

RUN = Path(__file__).parents[2] / "fixtures/product"
FIRST = "documents/handoffs/handoff_5b0f7f52-6c1d-4a38-9e44-2d9a7c31e806_user_to_orchestrator_20260504T080000Z.json"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the files that the run names."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    work_tree = tmp_path / "work tree"
    subprocess.run(["git", "init", "-q", "-b", "main", str(work_tree)], check=True)
    for path in ("inputs/trap_counts_2025.csv", *(f"documents/{name}_Orchard_Scout_2026-05-04.{ending}" for name, ending in (
        ("MarketResearch", "json"), ("AIFraming", "md"), ("AIFraming", "html"), ("PRFAQ", "md"), ("PRFAQ", "html"),
    ))):  # fmt: skip
        (work_tree / path).parent.mkdir(exist_ok=True)
        (work_tree / path).write_text("content\n")
    return work_tree.resolve()


def asked(
    root: Path, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, dict[str, Any]]:
    code = run(["envelope", *words, "--json", "-C", str(root)])
    return code, json.loads(capsys.readouterr().out)


def reasons(answer: dict[str, Any]) -> list[tuple[str, str]]:
    return [(finding["reason"], finding["at"]) for finding in answer["findings"]]


def step(name: str) -> str:
    return str(next(RUN.glob(f"{name}*.json")))


def until_the_error(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(1, 9):
        assert asked(root, capsys, "new", step(f"{number:02}"))[0] == Exit.DONE
    assert asked(root, capsys, "new", step("prd_failed"))[0] == Exit.DONE


def test_new_prints_the_path_and_the_attempt(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = asked(root, capsys, "new", step("01"))
    assert (code, answer["data"]) == (Exit.DONE, {"state": "created", "path": FIRST, "attempt": 1})
    assert answer["schema"] == "yolo-fs/envelope-new/1"
    assert json.loads((root / FIRST).read_text()) == json.loads(Path(step("01")).read_text())
    code, answer = asked(root, capsys, "new", step("01"))
    assert (code, answer["data"]["state"]) == (Exit.DONE, "already_there")


def test_a_credential_is_told_by_check_and_new_as_by_whoever_commits(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = json.loads(Path(step("01")).read_text())
    key = "AKIA" + "Q4WZ7T2NRB6XKVEH"
    value["payload"]["product_concept"]["target_audience"] = f"Growers with {key}"
    (root / "draft.json").write_text(json.dumps(value) + "\n")
    for verb in ("check", "new"):
        code, answer = asked(root, capsys, verb, str(root / "draft.json"))
        assert (code, reasons(answer)) == (Exit.FINDINGS, [("secret", "")]), verb
        assert key not in json.dumps(answer)
    assert not (root / FIRST).exists()
    (root / FIRST).parent.mkdir(parents=True)
    (root / FIRST).write_text(json.dumps(value) + "\n")
    assert run(["validate", FIRST, "--json", "-C", str(root)]) == Exit.FINDINGS
    told = json.loads(capsys.readouterr().out)
    assert [one["reason"] for one in told["findings"]] == ["secret"]


def test_for_people_new_prints_the_path_alone(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["envelope", "new", step("01"), "-C", str(root)]) == Exit.DONE
    assert capsys.readouterr() == (f"{FIRST}\n", "")


def test_new_reads_stdin(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(step("01")).read_bytes())))
    assert asked(root, capsys, "new", "-")[1]["data"]["path"] == FIRST


def test_a_refused_envelope_leaves_nothing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "inputs/trap_counts_2025.csv").unlink()
    code, answer = asked(root, capsys, "new", step("01"))
    assert (code, answer["data"]["state"], answer["ok"]) == (Exit.FINDINGS, "refused", False)
    assert reasons(answer) == [("file_missing", "/payload/context_files/0")]
    assert not (root / FIRST).exists()


def test_a_text_that_is_no_json_is_refused(
    root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "draft.json").write_text("```json\n{}\n```\n")
    code, answer = asked(root, capsys, "new", str(tmp_path / "draft.json"))
    assert (code, answer["findings"][0]["reason"]) == (Exit.FINDINGS, "fenced_json")


def test_check_tells_what_contradicts_an_earlier_handoff(
    root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked(root, capsys, "new", step("01"))
    draft = tmp_path / "draft.json"
    draft.write_text(
        Path(step("02"))
        .read_text()
        .replace("Apple and pear growers with 5 to 80 hectares", "Vintners")
    )
    code, answer = asked(root, capsys, "check", str(draft))
    assert code == Exit.FINDINGS
    assert reasons(answer) == [("state_conflict", "/payload/research_request/target_audience")]
    assert (
        f"/payload/product_concept/target_audience of {FIRST}" in answer["findings"][0]["message"]
    )


def test_check_names_a_misnamed_file(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = root / "documents/handoffs/first.json"
    wrong.parent.mkdir()
    wrong.write_bytes(Path(step("01")).read_bytes())
    code, answer = asked(root / "documents", capsys, "check", "handoffs/first.json")
    assert (code, answer["data"]["path"]) == (Exit.FINDINGS, "documents/handoffs/first.json")
    assert [(finding["reason"], finding["expected"]) for finding in answer["findings"]] == [
        ("name_mismatch", FIRST)
    ]


def test_check_of_a_good_one_ends_with_0(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked(root, capsys, "new", step("01"))
    code, answer = asked(root, capsys, "check", FIRST)
    assert (code, answer["data"]) == (Exit.DONE, {"path": FIRST, "errors": 0, "warnings": 0})


@pytest.mark.parametrize("make", ["nothing", "link", "folder"])
def test_what_is_no_file_cannot_be_checked(
    root: Path, capsys: pytest.CaptureFixture[str], make: str
) -> None:
    path = root / "draft.json"
    if make == "link":
        path.symlink_to(step("01"))
    if make == "folder":
        path.mkdir()
    code, answer = asked(root, capsys, "check", "draft.json")
    expected = "file_missing" if make == "nothing" else "not_regular"
    assert (code, answer["findings"][0]["reason"]) == (Exit.FINDINGS, expected)


@pytest.mark.proves("003:12")
def test_show_tells_the_whole_session(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    until_the_error(root, capsys)
    code, answer = asked(root, capsys, "show")
    data = answer["data"]
    assert (code, data["status"], data["progress_percentage"]) == (Exit.DONE, "failed", 60)
    assert [handoff["to"] for handoff in data["handoffs"]][-2:] == ["prd", "orchestrator"]
    assert data["handoffs"][-1]["is_error"]
    assert [(way["way"], way["leads_to"]["status"]) for way in data["ways"]] == [
        ("retry", "running"), ("ask", "waiting"), ("skip", "running"), ("abort", "aborted")
    ]  # fmt: skip


def test_show_for_people_begins_with_the_line_and_ends_with_the_ways(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    until_the_error(root, capsys)
    assert run(["envelope", "show", "5b0f", "-C", str(root)]) == Exit.DONE
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines[0]
        == "Orchard Scout [############--------] 60 %, 3 of 5 phases, prd failed: GENERATION_FAILED"
    )
    assert lines[-5].startswith("choose with 'yolo-fs envelope choose 5b0f7f52-")
    assert lines[-4] == "  retry  Retry the failed agent → running: prd does prd, attempt 2"
    assert lines[-3] == "  ask    Request user intervention → waiting for the user"
    assert lines[-2] == (
        "  skip   Skip to next phase with degraded input → running: orchestrator does prototype, without prd"
    )


def test_choose_records_and_show_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    until_the_error(root, capsys)
    assert run(["envelope", "choose", "5b0f7f52", "retry", "-C", str(root)]) == Exit.DONE
    assert capsys.readouterr().out == "retry: running: prd does prd, attempt 2\n"
    data = asked(root, capsys, "show")[1]["data"]
    assert (data["choice"]["way"], data["status"]) == ("retry", "running")


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("choose", "5b0f7f52", "pray"), Exit.USAGE, "unknown_name"),
        (("choose", "ffff", "retry"), Exit.USAGE, "unknown_name"),
        (("show", "ffff"), Exit.USAGE, "unknown_name"),
    ],
)
def test_what_does_not_exist_is_a_usage_error(
    root: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: Exit, reason: str
) -> None:
    until_the_error(root, capsys)
    found, answer = asked(root, capsys, *words)
    assert (found, answer["findings"][0]["reason"]) == (code, reason)


def test_without_an_error_nothing_can_be_chosen(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked(root, capsys, "new", step("01"))
    code, answer = asked(root, capsys, "choose", "5b0f7f52", "retry")
    assert (code, answer["findings"][0]["reason"]) == (Exit.FINDINGS, "state_conflict")


def test_without_any_session_show_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = asked(root, capsys, "show")
    assert (code, answer["findings"][0]["reason"]) == (Exit.USAGE, "unknown_name")


def test_outside_a_repository_it_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = asked(tmp_path, capsys, "show")
    assert (code, answer["findings"][0]["reason"]) == (Exit.NOT_HERE, "not_a_repository")


def test_no_byte_of_an_envelope_drives_the_terminal(
    root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    evil = "Orchard\x1b[31m\u202e Scout"
    value = json.loads(Path(step("01")).read_text())
    value["product_name"] = value["payload"]["product_concept"]["name"] = evil
    value["source_agent"]["phase_completed"] = value["target_agent"]["phase_to_execute"] = (
        "intake\n\x07fake line"
    )
    (tmp_path / "draft.json").write_text(json.dumps(value))
    run(["envelope", "new", str(tmp_path / "draft.json"), "-C", str(root)])
    run(["envelope", "show", "-C", str(root)])
    run(["envelope", "check", str(tmp_path / "draft.json"), "-C", str(root)])
    said = "".join(capsys.readouterr())
    assert said
    assert not [char for char in said if (char < " " and char != "\n") or char in "\x7f\u202e"]


@pytest.mark.proves("003:379b")
def test_validate_says_of_a_handoff_what_check_says(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / ".yolo-planning/phases").mkdir(parents=True)
    asked(root, capsys, "new", step("01"))
    good = root / FIRST
    blank = json.loads(good.read_text())
    blank["payload"]["product_concept"]["name"] = "  "
    absent = json.loads(good.read_text())
    absent["payload"]["context_files"] = ["inputs/nowhere.csv"]
    misnamed = good.with_name("my_handoff.json")
    for name, text in {good: blank, misnamed: absent}.items():
        name.write_text(json.dumps(text) + "\n")

    told = {}
    for path in (FIRST, "documents/handoffs/my_handoff.json"):
        code, answer = asked(root, capsys, "check", str(root / path))
        assert code == Exit.FINDINGS
        told[path] = set(reasons(answer))
    assert run(["validate", "--json", "-C", str(root)]) == Exit.FINDINGS
    found = json.loads(capsys.readouterr().out)["findings"]
    for path, expected in told.items():
        said = {(one["reason"], one["at"]) for one in found if one["path"] == path}
        assert said == expected, path


def test_where_no_session_has_begun_show_says_that_and_how_one_begins(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["envelope", "show", "-C", str(root)]) == 2
    told = capsys.readouterr().err
    assert "no session of the product workflow has begun here" in told
    assert "'yolo-fs envelope new DRAFT'" in told
