"""What a role has no tool for it says, and what it says is put in its place word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from yolo_fs.authority.actors import find_actor
from yolo_fs.company.answers import (
    NOTHING_SPOKEN,
    Spoken,
    contents_in,
    decision_in,
    put,
    spoken_by,
)
from yolo_fs.core.reasons import YoloError
from yolo_fs.definitions.definition import Definition
from yolo_fs.protocol.departments import Mode
from yolo_fs.protocol.roster import AGENTS

FILE = ".yolo-planning/phases/01-auth/critique.jsonl"


@pytest.mark.parametrize("agent", AGENTS, ids=lambda one: one.name)
def test_who_is_told_to_answer_is_who_has_no_tool(agent) -> None:  # type: ignore[no-untyped-def]
    definition = Definition(agent)
    actor = find_actor(agent.name, None, Mode.MULTI)
    for one in definition.writes:
        spoken = spoken_by(actor, (one.path,), "yolo-fs escalate resolve")
        assert bool(spoken.files) is not definition.can_write, one.path
        assert spoken.decides is not definition.can_run


def test_people_and_agents_without_limits_say_nothing() -> None:
    for name in ("dev", "owner", "go"):
        assert spoken_by(find_actor(name), ("src/a.py",), "x") == NOTHING_SPOKEN
    assert spoken_by(find_actor("lead"), (FILE,), "x") == Spoken()


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        ('Here:\n```json\n{"id":"C1"}\n```\n', '{"id":"C1"}\n'),
        ("```\nfirst\n```\nand\n```\nlast\n```", "last\n"),
        ("````text\na\n```\nb\n````", "a\n```\nb\n"),
        ("```json\r\n{}\r\n```", "{}\n"),
        ("no fence at all", None),
        ("```json\nnever closed", None),
        ("", None),
    ],
)
def test_the_content_of_a_file_is_the_last_fenced_block(answer: str, content: str | None) -> None:
    found = contents_in(answer, (FILE,))
    assert found == ({FILE: content} if content is not None else {})


def test_several_files_need_as_many_blocks() -> None:
    answer = "```\none\n```\n```\ntwo\n```"
    assert contents_in(answer, ("a", "b")) == {"a": "one\n", "b": "two\n"}
    assert contents_in(answer, ("a", "b", "c")) == {}
    assert contents_in(answer, ()) == {}


def test_a_decision_is_the_last_line_that_says_so() -> None:
    said = "Decision: later\nI thought again.\nDecision: blue, it is known"
    assert decision_in(said) == ("Decision", "blue, it is known")
    assert decision_in("Escalate: scope") == ("Escalate", "scope")
    assert decision_in("My decision: blue") == decision_in("Decision:") == ("", "")


def test_an_answer_follows_no_link_out_of_the_repository(tmp_path: Path) -> None:
    root, outside = tmp_path / "work", tmp_path / "outside"
    outside.mkdir()
    root.mkdir()
    (root / ".yolo-planning").symlink_to(outside)
    with pytest.raises(YoloError):
        put(str(root), {FILE: "x\n"})
    assert not list(outside.iterdir())
    (root / ".yolo-planning").unlink()
    put(str(root), {FILE: "x\n"})
    assert (root / FILE).read_text() == "x\n"
