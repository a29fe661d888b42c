"""`validate` judges files wherever they are, by their bytes, at once, and changes none of them."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.examples import FAMILIES, kind_of_example
from yolo_fs.artifacts.catalogue import find_kind
from yolo_fs.artifacts.repair import diff, mended
from yolo_fs.checking.examples import example_of
from yolo_fs.cli import validate as module
from yolo_fs.cli.main import run
from yolo_fs.cli.validate import as_github, as_sarif, bar, watched
from yolo_fs.core.reasons import Exit, Finding, Reason

EXAMPLES = Path(__file__).parents[2] / "fixtures" / "examples"
GOOD = EXAMPLES / "artifacts" / "critique" / "ok" / "two_rounds.jsonl"
FINDING = {
    "id": "C1",
    "cat": "gap",
    "sev": "major",
    "q": "Why?",
    "ctx": "Login",
    "sug": "Ask",
    "st": "open",
}
TREE = ".yolo-planning"
PHASE = ".yolo-planning/phases/01-auth"


@pytest.fixture(autouse=True)
def no_user_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one phase."""
    work_tree = tmp_path / "work tree"
    git(tmp_path, "init", "-q", "-b", "main", str(work_tree))
    (work_tree / PHASE).mkdir(parents=True)
    return work_tree.resolve()


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def validate(
    root: Path, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, dict[str, Any]]:
    code = run(["validate", "-C", str(root), "--json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def told(answer: dict[str, Any], *keys: str) -> list[tuple[Any, ...]]:
    return [
        tuple(finding[key] for key in keys)
        for finding in answer["findings"]
        if finding["level"] == "error"
    ]


def reasons(answer: dict[str, Any]) -> list[str]:
    return [reason for (reason,) in told(answer, "reason")]


def jsonl(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def plan(number: str, wave: int, *needs: str) -> bytes:
    header = {"p": "01", "n": number, "t": "Login", "w": wave, "d": list(needs), "obj": "Log in"}
    task = {"id": "T1", "tp": "auto", "a": "Do", "f": ["a.ts"], "v": "Look", "done": "Done"}
    return jsonl({**header, "mh": {"tr": [], "ar": [], "kl": []}}, task)


def write(root: Path, name: str, data: bytes) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


# --- the planning tree -----------------------------------------------------------------------------------------------


def test_good_tree_has_no_error(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, f"{PHASE}/critique.jsonl", jsonl(FINDING))
    write(root, f"{PHASE}/notes.txt", b"free")
    code, answer = validate(root, capsys)
    assert (code, answer["ok"], answer["data"]["checked"]) == (Exit.DONE, True, 1)


def test_fault_is_told_with_file_and_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, f"{PHASE}/critique.jsonl", jsonl(FINDING, FINDING | {"id": "C2", "sev": "high"}))
    code, answer = validate(root, capsys)
    assert code == Exit.FINDINGS
    assert told(answer, "reason", "path", "line", "at") == [
        ("unknown_value", f"{PHASE}/critique.jsonl", 2, "/sev"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("The login has no limit.\nThe token never ends.\n", "no line is JSON"),
        ("id: C1\ncat: gap\nsev: minor\n", "the text is YAML"),
        ("findings[2]{id,cat}:\n  C1,gap\n  C2,gap\n", "the text is TOON"),
        ('{\n  "id": "C1",\n  "cat": "gap"\n}\n', "one JSON value is spread over 4 lines"),
        ('{\n"id": "C1"\n}\n{\n"id": "C2"\n}\n', "JSON values are spread over several lines"),
    ],
)
def test_a_file_in_another_form_is_one_fault_at_its_first_line(
    root: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    write(root, f"{PHASE}/critique.jsonl", text.encode())
    code, answer = validate(root, capsys)
    assert code == Exit.FINDINGS
    (found,) = told(answer, "line", "message")
    assert found[0] == 1 and message in found[1], found


def test_warnings_alone_do_not_fail(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, f"{PHASE}/critique.jsonl", jsonl(FINDING | {"mood": "good"}))
    code, answer = validate(root, capsys)
    assert (code, answer["data"]["warnings"]) == (Exit.DONE, 1)


def test_plans_are_checked_against_their_neighbours(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, f"{PHASE}/01-01.plan.jsonl", plan("01", 2))
    write(root, f"{PHASE}/01-02.plan.jsonl", plan("02", 2, "01-01"))
    code, answer = validate(root, capsys)
    assert [(one["reason"], one["level"]) for one in answer["findings"]] == [
        ("wave_order", "warning")
    ]
    assert code == Exit.DONE
    write(root, f"{PHASE}/01-03.plan.jsonl", plan("03", 3, "01-04"))
    assert reasons(validate(root, capsys)[1]) == ["waits_for"]


def test_commits_of_a_summary_are_looked_up_in_the_own_repository_only(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = (EXAMPLES / "artifacts" / "summary" / "ok" / "complete.jsonl").read_bytes()
    foreign = write(tmp_path, f"elsewhere/{PHASE}/01-02.summary.jsonl", data)
    write(root, f"{PHASE}/01-02.summary.jsonl", data)
    assert "unknown_commit" in reasons(validate(root, capsys)[1])
    assert "unknown_commit" not in reasons(validate(root, capsys, str(foreign))[1])


def test_every_fault_of_a_bad_configuration_is_told(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, ".yolo-planning/config.json", b'{"effort": "lazy", "auto_commit": "yes"}\n')
    write(root, f"{PHASE}/.dept-status-backend.json", b"{}\n")
    code, answer = validate(root, capsys)
    assert code == Exit.FINDINGS
    assert {at for path, at in told(answer, "path", "at") if path.endswith("config.json")} == {
        "/effort",
        "/auto_commit",
    }
    assert any(path.endswith(".dept-status-backend.json") for (path,) in told(answer, "path"))


def test_secret_is_told(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    write(root, f"{PHASE}/critique.jsonl", jsonl(FINDING | {"ctx": f"aws_access_key_id {key}"}))
    assert reasons(validate(root, capsys)[1]) == ["secret"]


def test_link_in_the_place_of_a_phase_is_told(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / ".yolo-planning/phases/02-login").symlink_to(root / PHASE)
    assert reasons(validate(root, capsys)[1]) == ["not_regular"]


def test_without_a_planning_tree_nothing_can_be_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert validate(tmp_path, capsys)[0] == Exit.NOT_HERE
    git(tmp_path, "init", "-q", str(tmp_path))
    code, answer = validate(tmp_path, capsys)
    assert (code, reasons(answer)) == (Exit.NOT_HERE, ["not_initialised"])


# --- any path --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("critique.jsonl", "artifacts/critique/ok/*"),
        ("01-02.plan.jsonl", "artifacts/plan/ok/enriched*"),
        ("architecture.toon", "artifacts/architecture/ok/*"),
        ("reqs.jsonl", "artifacts/reqs/ok/*"),
        ("HANDOFF.md", "handoffs/handoff-file/ok/*"),
        ("handoff.json", "handoffs/handoff-json/ok/*"),
        (".dept-status-backend.json", "states/dept-status/ok/*"),
        ("config.json", "configs/config/ok/*"),
        ("answer.json", "messages/qa_result/ok/*"),
        ("parcel.json", "envelopes/prd-report/ok/*"),
    ],
)
def test_file_outside_a_tree_is_known_by_its_name_or_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, example: str
) -> None:
    good = min(EXAMPLES.glob(example)).read_bytes()
    path = write(tmp_path, name, good)
    assert validate(tmp_path, capsys, name)[0] == Exit.DONE
    path.write_bytes(
        good.replace(b'"', b"", 1).replace(b"handoff:", b"handof:", 1).replace(b"tech_", b"\x00", 1)
    )
    assert validate(tmp_path, capsys, name)[0] == Exit.FINDINGS


def test_file_that_nothing_tells_about_is_refused_with_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "notes.txt", b"hello\n")
    code, answer = validate(tmp_path, capsys, "notes.txt")
    assert (code, reasons(answer)) == (Exit.FINDINGS, ["unknown_name"])
    assert "--type" in answer["findings"][0]["hint"]


def test_a_document_in_the_place_of_an_artifact_is_told_which_one_is_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "01-02-PLAN.md", b"# Plan\n")
    code, answer = validate(tmp_path, capsys, "01-02-PLAN.md")
    [told] = answer["findings"]
    assert (code, told["expected"]) == (Exit.FINDINGS, "01-02.plan.jsonl")
    assert "yolo-fs schema example 01-02.plan.jsonl" in told["hint"]


@pytest.mark.parametrize(
    ("name", "form"), [("architecture.md", "as TOON"), ("01-02-PLAN.md", "as JSON lines")]
)
def test_a_document_is_told_in_which_form_the_artifact_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, form: str
) -> None:
    write(tmp_path, name, b"# Title\n")
    [told] = validate(tmp_path, capsys, name)[1]["findings"]
    assert form in told["hint"]


def test_type_says_what_a_file_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "notes.txt", jsonl(FINDING))
    assert validate(tmp_path, capsys, "notes.txt", "--type", "critique")[0] == Exit.DONE
    assert (
        validate(tmp_path, capsys, "notes.txt", "--type", "artifact/decisions")[0] == Exit.FINDINGS
    )


@pytest.mark.parametrize(
    ("name", "hint"), [("critiqe", "critique"), ("state", "artifact/state or state/state")]
)
def test_unknown_type_is_a_usage_error_with_the_nearest_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, hint: str
) -> None:
    code, answer = validate(tmp_path, capsys, "x", "--type", name)
    assert code == Exit.USAGE
    assert hint in answer["findings"][0]["hint"]


def test_message_of_another_type_is_not_the_one_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = min((EXAMPLES / "messages" / "qa_result" / "ok").iterdir())
    write(tmp_path, "a.json", good.read_bytes())
    assert told(validate(tmp_path, capsys, "a.json", "--type", "dev_blocker")[1], "at", "expected")[
        0
    ] == (
        "/type",
        "dev_blocker",
    )


def test_folder_yields_what_is_ours_and_leaves_the_rest_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "box/package.json", b'{"type": "module"}')
    write(tmp_path, "box/config.json", b"[]")
    write(tmp_path, "box/ROADMAP.md", b"one\r\ntwo\r\n")
    write(tmp_path, "box/critique.jsonl", jsonl(FINDING | {"sev": "high"}))
    write(tmp_path, f"box/repo/{PHASE}/decisions.jsonl", b"{}\n")
    _, answer = validate(tmp_path, capsys, "box")
    assert {path for (path,) in told(answer, "path")} == {
        "box/critique.jsonl",
        f"box/repo/{PHASE}/decisions.jsonl",
    }


def test_missing_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = validate(tmp_path, capsys, "gone.jsonl")
    assert (code, told(answer, "reason", "path")) == (
        Exit.FINDINGS,
        [("file_missing", "gone.jsonl")],
    )


def test_a_folder_called_bad_excuses_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "critique/bad/critique.jsonl", jsonl(FINDING | {"sev": "high"}))
    code, answer = validate(tmp_path, capsys, "critique")
    assert (code, reasons(answer)) == (Exit.FINDINGS, ["unknown_value"])
    write(tmp_path, "critique/bad/missing_key__x.jsonl", b"{}\n")
    code, answer = validate(tmp_path, capsys, "critique/bad/missing_key__x.jsonl")
    assert (code, reasons(answer)) == (Exit.FINDINGS, ["unknown_name"])
    assert answer["findings"][0]["message"] == "cannot determine the file's type"


# --- hostile files ---------------------------------------------------------------------------------------------------


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


HOSTILE: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "brackets": (
        "critique.jsonl",
        lambda path: path.write_bytes(b"[" * 200_000 + b"\n"),
        "nesting_too_deep",
    ),
    "brackets without a kind": (
        "x.json",
        lambda path: path.write_bytes(b"[" * 200_000 + b"\n"),
        "nesting_too_deep",
    ),
    "sparse": ("critique.jsonl", _sparse, "file_too_large"),
    "sparse without a kind": ("x.json", _sparse, "file_too_large"),
    "pipe": ("critique.jsonl", os.mkfifo, "not_regular"),
    "link": ("critique.jsonl", lambda path: path.symlink_to(GOOD), "not_regular"),
    "name with a newline": (
        "crit\nique.jsonl",
        lambda path: path.write_bytes(jsonl(FINDING)),
        "unknown_name",
    ),
    "folder": (
        "HANDOFF.md/x",
        lambda path: (path.parent.mkdir(), path.write_bytes(b"x")),
        "unknown_name",
    ),
}


@pytest.mark.parametrize("case", HOSTILE, ids=str)
def test_hostile_file_gives_one_clear_finding_in_bounded_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    name, make, reason = HOSTILE[case]
    make(tmp_path / name)
    tracemalloc.start()
    code, answer = validate(tmp_path, capsys, name)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (code, reasons(answer)) == (Exit.FINDINGS, [reason])
    assert peak_bytes < 32 << 20


def test_terminal_never_sees_a_control_character_of_a_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["validate", "-C", str(tmp_path), "a\n\x1b[31mred"])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "a\\x0a\\x1b[31mred" in out


# --- stdin -----------------------------------------------------------------------------------------------------------


def said(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_stdin_is_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(monkeypatch, b'{"type": "dev_bloker"}')
    code, answer = validate(tmp_path, capsys, "-")
    assert (code, told(answer, "reason", "path", "expected")) == (
        1,
        [("unknown_type", "-", "dev_blocker")],
    )


def test_stdin_is_what_type_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(monkeypatch, jsonl(FINDING))
    assert validate(tmp_path, capsys, "-", "--type", "critique")[0] == Exit.DONE


def test_endless_stdin_is_cut_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(monkeypatch, b" " + b"x" * (9 << 20))
    assert reasons(validate(tmp_path, capsys, "-")[1]) == ["file_too_large"]


# --- what is staged --------------------------------------------------------------------------------------------------


def test_staged_content_is_judged_not_the_work_tree(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(root, f"{PHASE}/critique.jsonl", jsonl(FINDING | {"sev": "high"}))
    git(root, "add", "-f", ".")
    path.write_bytes(jsonl(FINDING))
    assert reasons(validate(root, capsys, "--staged")[1]) == ["unknown_value"]
    git(root, "add", "-f", ".")
    path.write_bytes(b"{}\n")
    assert validate(root, capsys, "--staged")[0] == Exit.DONE


def test_staged_means_different_from_head(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, f"{PHASE}/critique.jsonl", b"{}\n")
    git(root, "add", "-f", ".")
    git(root, "commit", "-qm", "bad, but there")
    write(root, f"{PHASE}/decisions.jsonl", b"{}\n")
    git(root, "add", "-f", ".")
    _, answer = validate(root, capsys, "--staged")
    assert {path for (path,) in told(answer, "path")} == {f"{PHASE}/decisions.jsonl"}


def test_staged_plan_is_checked_against_staged_plans(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write(root, f"{PHASE}/01-01.plan.jsonl", plan("01", 1))
    write(root, f"{PHASE}/01-02.plan.jsonl", plan("02", 2, "01-01"))
    git(root, "add", "-f", ".")
    other.unlink()
    assert validate(root, capsys, "--staged")[0] == Exit.DONE


def test_index_that_a_hook_is_given_is_the_one_that_counts(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, f"{PHASE}/critique.jsonl", b"{}\n")
    monkeypatch.setenv("GIT_INDEX_FILE", str(root / ".git" / "next-index"))
    git(root, "add", "-f", ".")
    assert validate(root, capsys, "--staged")[1]["data"]["checked"] == 1
    monkeypatch.delenv("GIT_INDEX_FILE", raising=False)
    assert validate(root, capsys, "--staged")[1]["data"]["checked"] == 0


def test_huge_staged_file_is_not_read(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, f"{PHASE}/critique.jsonl", b" " * (9 << 20))
    git(root, "add", "-f", ".")
    assert reasons(validate(root, capsys, "--staged", PHASE)[1]) == ["file_too_large"]
    assert validate(root, capsys, "--staged", "src")[1]["data"]["checked"] == 0


# --- formats ---------------------------------------------------------------------------------------------------------


def test_github_commands_are_escaped() -> None:
    finding = Finding(
        Reason.UNKNOWN_VALUE, "a,b:c%\n.jsonl", 3, "/sev", "50%\n::error::x", "critical"
    )
    (line,) = as_github([finding]).splitlines()
    assert line == (
        "::error file=a%2Cb%3Ac%25\\x0a.jsonl,line=3,title=unknown_value"
        "::at /sev: 50%25\\x0a::error::x; expected critical"
    )


def test_sarif_names_rule_place_and_level() -> None:
    log = json.loads(
        as_sarif([Finding(Reason.UNKNOWN_VALUE, "a b/\udcff.jsonl", 3, "/sev", "high")])
    )
    (result,) = log["runs"][0]["results"]
    assert (log["version"], result["ruleId"], result["level"]) == (
        "2.1.0",
        "unknown_value",
        "error",
    )
    assert log["runs"][0]["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "unknown_value"
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "a%20b/%FF.jsonl"}, "region": {"startLine": 3}}


def test_each_format_goes_to_stdout_alone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, f"{PHASE}/critique.jsonl", jsonl(FINDING | {"sev": "high"}))
    said_by = {}
    for form in ("text", "json", "github", "sarif"):
        assert run(["validate", "-C", str(root), "--format", form]) == Exit.FINDINGS
        said_by[form] = capsys.readouterr()
    assert {seen.err for seen in said_by.values()} == {""}
    assert all("unknown_value" in seen.out for seen in said_by.values())
    run(["validate", "-C", str(root), "--json"])
    assert capsys.readouterr().out == said_by["json"].out


# --- repairs ---------------------------------------------------------------------------------------------------------


def test_the_diff_of_a_repair_is_a_patch_that_git_applies_and_nothing_is_written(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = json.dumps(FINDING | {"done": ["a", "b"]}).replace('"b"]', '"b",]')
    before = f"\ufeff```json\r\n{record},\r\n```".encode()
    path = write(root, f"{PHASE}/critique.jsonl", before)
    assert run(["fix", "-C", str(root)]) == Exit.DONE
    shown = capsys.readouterr()
    assert "\ufeff" not in shown.out and "--json" in shown.err, "a mark that nobody sees is shown"
    assert run(["fix", "-C", str(root), "--json"]) == Exit.DONE
    patch = json.loads(capsys.readouterr().out)["data"]["repaired"][0]["diff"]
    assert path.read_bytes() == before
    subprocess.run(["git", "apply", "-"], input=patch, text=True, cwd=root, check=True)
    assert validate(root, capsys)[0] == Exit.DONE


def test_old_names_of_own_keys_are_replaced_and_no_others() -> None:
    kind = find_kind("plan")
    assert kind is not None
    before = b'{"mh":{"phase":"phase"},"phase":"01","n":"\\"plan\\":","title":"old","t":"kept"}\n{"id":"T1","desc":"x"}\n'
    after = b'{"mh":{"phase":"phase"},"p":"01","n":"\\"plan\\":","title":"old","t":"kept"}\n{"id":"T1","a":"x"}\n'
    assert mended(before, kind) == after


def test_a_file_that_is_no_artifact_is_repaired_too(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"effort": "balanced"}
    path = write(
        root,
        ".yolo-planning/config.json",
        b"\xef\xbb\xbf" + json.dumps(config).replace("}", ",}\n").encode(),
    )
    assert run(["fix", "-C", str(root), "--write"]) == Exit.DONE, capsys.readouterr()
    assert json.loads(path.read_text()) == config


def test_what_is_right_already_is_left_alone() -> None:
    kind = find_kind("critique")
    assert kind is not None
    assert mended(GOOD.read_bytes(), kind) is None
    assert mended(b"\xff\n", kind) is None


@pytest.mark.parametrize("family", FAMILIES)
def test_repair_is_done_after_one_pass_and_never_makes_good_examples_other(family: str) -> None:
    for path in sorted(EXAMPLES.glob(f"{family}/*/*/*")):
        kind = kind_of_example(path)
        data = path.read_bytes()
        once = mended(data, kind)
        assert once is None or (
            mended(once, kind) is None and diff(data, once, path.name).startswith("--- a/")
        ), path
        assert path.parts[-2] != "ok" or once is None, path


def test_a_name_that_nearly_is_an_artifacts_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    phase = tmp_path / ".yolo-planning/phases/01-auth"
    phase.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (phase / "critique.json").write_text("{}\n")
    (phase / "notes.md").write_text("# Notes\n")
    for command in ("validate", "status", "doctor"):
        run([command, "--json", "-C", str(tmp_path)])
        found = json.loads(capsys.readouterr().out)["findings"]
        named = [(one["path"], one["expected"]) for one in found if one["reason"] == "unknown_name"]
        assert named == [
            (
                ".yolo-planning/phases/01-auth/critique.json",
                ".yolo-planning/phases/01-auth/critique.jsonl",
            )
        ], command


# --- long work shows how far it is on a terminal, clears its line in the end, and shows nothing elsewhere ---


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, patience_s: float, *, quiet: bool = False
) -> str:
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(module, "PATIENCE_S", patience_s)
    monkeypatch.setattr(module, "_EVERY_S", 0.0)
    assert list(watched(range(1, 5), "commits", lambda _: 4, quiet=quiet)) == [1, 2, 3, 4]
    return stream.getvalue()


def test_a_terminal_sees_a_bar_that_is_gone_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, Terminal(), 0.0)
    assert "[############............] 2 of 4 commits" in text
    assert text.endswith("4 of 4 commits\r\x1b[K")


def test_nothing_is_shown_elsewhere_or_where_it_is_soon_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert shown(monkeypatch, io.StringIO(), 0.0) == ""
    assert shown(monkeypatch, Terminal(), 60.0) == ""
    assert shown(monkeypatch, Terminal(), 0.0, quiet=True) == ""


def test_without_a_total_there_is_a_count() -> None:
    assert bar(7, 0) == "7"
    assert bar(9, 3).startswith("[########################]")


@pytest.mark.parametrize("folder", ["packages/app", "a b", ".hidden/deep/er"])
def test_a_planning_tree_below_the_root_is_nobodys(
    root: Path, capsys: pytest.CaptureFixture[str], folder: str
) -> None:
    file = root / folder / PHASE / "critique.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(GOOD.read_text())
    code, answer = validate(root, capsys, str(file))
    assert code == Exit.FINDINGS
    assert told(answer, "reason", "expected") == [("not_an_artifact", f"{PHASE}/critique.jsonl")]


def test_a_planning_tree_of_a_repository_inside_is_its_own(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = root / "vendor/lib"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    file = inner / PHASE / "critique.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(GOOD.read_text())
    assert validate(root, capsys, str(file))[0] == Exit.DONE


@pytest.mark.parametrize(
    "words", [["validate"], ["phase", "new", "one"], ["run", "--once"], ["doctor"]]
)
def test_whoever_finds_no_planning_tree_at_the_root_names_the_one_that_lies_deeper(
    root: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    shutil.rmtree(root / TREE)
    inner = root / "vendor/lib"
    (inner / TREE).mkdir(parents=True)
    git(inner, "init", "-q")
    assert run([*words, "-C", str(root)]) != Exit.DONE
    assert "vendor/lib" not in "".join(capsys.readouterr())
    (root / "packages/app" / TREE).mkdir(parents=True)
    assert run([*words, "-C", str(root)]) != Exit.DONE
    told_words = "".join(capsys.readouterr())
    assert "not_initialised" in told_words and f"packages/app/{TREE}" in told_words


@pytest.mark.parametrize("folder", [f"{PHASE}/critique.jsonl", f"{TREE}/reqs.jsonl"])
@pytest.mark.parametrize("is_named", [True, False])
def test_a_folder_with_the_name_of_an_artifact_is_told(
    root: Path, folder: str, is_named: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who may have made it, no file can take its place, and the step never ends."""
    (root / folder).mkdir()
    code, answer = validate(root, capsys, *([folder] if is_named else []))
    assert (code, reasons(answer)) == (Exit.FINDINGS, ["not_regular"])
    (root / folder).rmdir()
    assert validate(root, capsys)[0] == Exit.DONE


def test_a_headless_plan_keeps_its_first_task(root: Path) -> None:
    """`fix` gave the task the phase and number of the header that lacked."""
    from yolo_fs.checking.fix import fix
    from yolo_fs.checking.validate import Validator

    path = write(root, f"{PHASE}/01-01.plan.jsonl", plan("01", 1).split(b"\n", 1)[1])
    validator = Validator(str(root))
    [file] = validator.paths([str(path)])
    assert not fix(validator, file, str(path), write=True).is_changed
    validator.close()


@pytest.mark.parametrize("kind", ["envelope/prd-request", "message/task_complete"])
def test_a_text_on_stdin_is_checked_as_what_it_says_that_it_is(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = example_of(kind).encode()
    (tmp_path / "x.json").write_bytes(text)
    assert run(["validate", str(tmp_path / "x.json")]) == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert run(["validate", "-"]) == 0, capsys.readouterr().out


def test_a_number_in_the_place_of_a_listed_text_is_told_that_it_has_to_be_a_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    envelope = json.loads(example_of("envelope/prd-request")) | {"handoff_version": 1.0}
    (tmp_path / "x.json").write_text(json.dumps(envelope) + "\n")
    run(["validate", str(tmp_path / "x.json")])
    assert 'got 1.0; expected a text, such as "1.0"' in capsys.readouterr().out
