"""Packets of document 001, HANDOFF.md's front matter and document 004's handoff.json."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from yolo_fs.core.reasons import Level, Reason
from yolo_fs.schemas.base import Shape
from yolo_fs.schemas.check import check
from yolo_fs.schemas.layout import Strictness
from yolo_fs.schemas.packet import HandoffFile, Packet, read_handoff_json

EXAMPLES = Path(__file__).parents[2] / "fixtures" / "examples" / "handoffs"
FIELDS = [
    "from_role", "to_role", "trigger", "session_id", "task_file",
    "directive_branch", "required_reading", "objective", "blocking_rule",
]  # fmt: skip
JQ_FILTER = """
  (.status  | type == "string") and
  (.artifacts | type == "array") and
  (has("next")) and
  (.summary | type == "string")
"""


def named(path: Path) -> str:
    return f"{path.parent.parent.name}/{path.stem}"


def read(path: Path) -> tuple[object, tuple[Any, ...]]:
    text = path.read_text(encoding="utf-8")
    match path.parent.parent.name:
        case "packet":
            return check(Packet, json.loads(text))
        case "handoff-json":
            return read_handoff_json(json.loads(text))
        case _:
            return check(HandoffFile, yaml.load(text.split("---\n")[1], Loader=yaml.BaseLoader))


def packet(**changes: str) -> dict[str, Any]:
    path = EXAMPLES / "packet" / "ok" / "architect_to_executor.json"
    return json.loads(path.read_text(encoding="utf-8")) | changes


def reasons(shape: type[Shape], value: dict[str, Any]) -> list[tuple[Reason, str]]:
    return [
        (fault.reason, fault.at) for fault in check(shape, value)[1] if fault.level is Level.ERROR
    ]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/ok/*")), ids=named)
def test_good_handoff_is_read(path: Path) -> None:
    shaped, faults = read(path)
    assert shaped is not None
    assert faults == ()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/bad/*")), ids=named)
def test_bad_handoff_fails_for_the_reason_in_its_name(path: Path) -> None:
    shaped, faults = read(path)
    assert shaped is None
    assert next(f.reason for f in faults if f.level is Level.ERROR) == Reason.of(
        path.stem.partition("__")[0]
    )


@pytest.mark.parametrize("kind", ["packet", "handoff-json", "handoff-file"])
def test_every_kind_has_its_examples(kind: str) -> None:
    assert len(list((EXAMPLES / kind / "ok").iterdir())) >= 2
    assert len(list((EXAMPLES / kind / "bad").iterdir())) >= 3


@pytest.mark.proves("001:13", "001:42")
def test_packet_has_nine_fields_in_the_order_of_the_document() -> None:
    assert list(Packet.model_fields) == FIELDS
    assert list(HandoffFile.model_fields["handoff"].annotation.model_fields) == FIELDS


@pytest.mark.proves("001:13")
@pytest.mark.parametrize("field", FIELDS)
def test_packet_without_one_field_is_incomplete(field: str) -> None:
    value = packet()
    del value[field]
    assert reasons(Packet, value) == [(Reason.MISSING_KEY, f"/{field}")]


@pytest.mark.proves("001:19", "001:20")
def test_session_and_task_may_be_unknown_only_outside_a_directive() -> None:
    value = packet(session_id="n/a", task_file="n/a")
    assert reasons(Packet, value) == []
    assert reasons(HandoffFile, {"handoff": value}) == [
        (Reason.BAD_FORMAT, "/handoff/session_id"),
        (Reason.BAD_FORMAT, "/handoff/task_file"),
    ]


BRANCHES = [
    "main", "feature/login", "a/b/c", "v1.2.x", "größe", "a-b_c", "user@host", "a}", "a{b", "x@", "{x}", "a/-b", "#12",
    "refs/x", "", "HEAD", "-a", "/a", "a/", "a//b", "a..b", ".a", "a/.b", "a.lock", "a.lock/b", "a.", "a b", "a\tb",
    "a\nb", "a~1", "a^", "a:b", "a?", "a*", "a[b", "a\\b", "a@{1}", "@{-1}", "a\x7f", "a./b", "a.locked",
]  # fmt: skip


@pytest.mark.proves("001:21")
@pytest.mark.parametrize("name", BRANCHES, ids=ascii)
def test_branch_is_accepted_exactly_when_git_accepts_it(name: str, tmp_path: Path) -> None:
    command = ["git", "check-ref-format", "--branch", name]
    accepted = (
        subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    )
    assert (reasons(Packet, packet(directive_branch=name)) == []) is accepted


@pytest.mark.parametrize("name", ["n/a", "@"])
def test_branch_that_would_mislead_is_refused_although_git_takes_it(name: str) -> None:
    assert reasons(Packet, packet(directive_branch=name)) == [
        (Reason.BAD_FORMAT, "/directive_branch")
    ]


@pytest.mark.parametrize("field", ["task_file", "required_reading", "objective", "blocking_rule"])
def test_placeholder_of_the_template_says_nothing(field: str) -> None:
    assert reasons(Packet, packet(**{field: "<fill this in>"})) == [
        (Reason.EMPTY_VALUE, f"/{field}")
    ]


@pytest.mark.parametrize("value", [None, 0, False, "", "planner", [], {"agent": "planner"}])
def test_next_of_a_handoff_json_may_be_anything(value: object) -> None:
    shaped, faults = read_handoff_json(
        {"status": "", "artifacts": [], "next": value, "summary": ""}
    )
    assert shaped is not None
    assert faults == ()


def test_further_keys_of_a_handoff_json_are_free() -> None:
    value = {"status": "done", "artifacts": [], "next": None, "summary": "", "elapsed_s": 4}
    assert read_handoff_json(value)[1] == ()
    assert (
        check(Packet, packet() | {"note": "x"}, Strictness(strict=True))[1][0].reason
        is Reason.UNKNOWN_KEY
    )


@pytest.mark.proves("004:37")
@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("handoff-json/*/*.json")), ids=named)
def test_handoff_json_is_judged_as_the_filter_of_the_document_judges_it(path: Path) -> None:
    judged = subprocess.run(
        ["jq", "-e", JQ_FILTER], input=path.read_bytes(), capture_output=True, check=False
    )
    assert (read(path)[0] is not None) is (judged.returncode == 0)
