"""The advisory hooks: validate-commit, validate-send-message, validate-summary,
validate-frontmatter.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.compat.shim import SUMMARY, call, fill, lines
from tests.compat.test_shims import ADVISORY


def told(name: str, cwd: Path, **tool_input: object) -> str:
    """Return the advice of a hook, which never fails."""
    given = json.dumps({"tool_name": "SendMessage", "tool_input": tool_input})
    done = call(name, cwd=cwd, given=given)
    assert (done.code, done.err) == (0, "")
    return done.advice


@pytest.mark.parametrize("name", sorted(ADVISORY))
@pytest.mark.parametrize(
    "given", ["", "{torn", "[]", "null", '{"tool_input": 7}', '{"tool_input": {"command": 7}}']
)
def test_input_that_says_nothing_is_met_with_silence(tmp_path: Path, name: str, given: str) -> None:
    assert call(name, cwd=tmp_path, given=given) == (0, "", "")


def test_advice_names_its_event(tmp_path: Path) -> None:
    done = call(
        "validate-commit", cwd=tmp_path, given='{"tool_input": {"command": "git commit -m oops"}}'
    )
    assert done.json["hookSpecificOutput"]["hookEventName"] == "PostToolUse"


# --- validate-commit -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        'git commit -m "feat(01-02): add login"',
        "git add . && git commit -am 'fix(state): it'",
        'git commit -m "docs(01): plan 01-02\n\nbody"',
        'git commit -m "no" -m "feat(a): last one wins"',
        "git commit --amend --no-edit",
        "git commit -F message",
        "git commit -m \"$(cat <<'EOF'\noops\nEOF\n)\"",
        "echo -m oops",
    ],
)
def test_a_command_that_is_fine_is_met_with_silence(tmp_path: Path, command: str) -> None:
    assert told("validate-commit", tmp_path, command=command) == ""


@pytest.mark.parametrize(
    "command",
    [
        'git commit -m "add login"',
        "git commit -m 'feat: no scope'",
        'git commit -m "feat(): empty scope"',
        'git commit -m "feat(a):no space"',
        'git commit -m "feat(a): "',
        'git commit -m "feat(a)!: bang"',
        'git commit -m "Feat(a): capital"',
        "git commit -m oops",
        'git commit -m "feat(a): first" -m "but the last is bad"',
    ],
)
def test_a_bad_subject_is_told(tmp_path: Path, command: str) -> None:
    assert "does not match format" in told("validate-commit", tmp_path, command=command)


# --- validate-send-message -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sender", "recipient", "is_warned"),
    [
        ("yolo-dev", "yolo-senior", False),
        ("yolo-fe-dev", "yolo-fe-lead", False),
        ("yolo-fe-dev", "yolo-dev", True),
        ("yolo-lead", "yolo-ux-lead", True),
        ("yolo-owner", "yolo-fe-lead", False),
        ("yolo-ux-lead", "yolo-owner", False),
        ("yolo-scout", "yolo-fe-dev", False),
        ("yolo-fe-dev", "yolo-security", False),
        ("yolo-fe-security", "yolo-dev", True),
        ("someone", "anyone", False),
        ("someone", "yolo-dev", True),
        ("", "yolo-dev", False),
        ("yolo-dev", "", False),
    ],
)
def test_departments_do_not_write_to_each_other(
    tmp_path: Path, sender: str, recipient: str, is_warned: bool
) -> None:
    fill(tmp_path, {".yolo-planning/.active-agent": f"{sender}\n"})
    said = told("validate-send-message", tmp_path, recipient=recipient)
    assert said.startswith("WARNING: ") if is_warned else said == ""


def test_another_tool_is_met_with_silence(tmp_path: Path) -> None:
    fill(tmp_path, {".yolo-planning/.active-agent": "yolo-fe-dev"})
    given = '{"tool_name": "Write", "tool_input": {"recipient": "yolo-dev"}}'
    assert call("validate-send-message", cwd=tmp_path, given=given) == (0, "", "")


def test_without_a_sender_there_is_silence(tmp_path: Path) -> None:
    assert told("validate-send-message", tmp_path, recipient="yolo-dev") == ""


# --- validate-summary ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (lines(SUMMARY), ""),
        (lines({"p": "01", "s": "complete", "fm": []}), ""),
        (lines({"p": "01", "fm": [], "sg": ["a"]}), "Missing 's' (status) field."),
        (lines({**SUMMARY, "sg": [""]}), "Field 'sg' must be an array of non-empty strings."),
        (lines({**SUMMARY, "sg": "text"}), "Field 'sg' must be an array of non-empty strings."),
        ('{"p": "01", "s": "comp', "Line 1: invalid JSON."),
        (lines(SUMMARY) + "torn", "Line 2: invalid JSON."),
    ],
)
def test_what_a_summary_lacks_is_told(tmp_path: Path, text: str, said: str) -> None:
    phase = fill(tmp_path / ".yolo-planning/01 auth", {"01-01.summary.jsonl": text})
    advice = told("validate-summary", tmp_path, file_path=str(phase / "01-01.summary.jsonl"))
    assert advice == (f"SUMMARY validation: {said}" if said else "")


def test_a_command_that_writes_a_summary_is_looked_at(tmp_path: Path) -> None:
    fill(tmp_path, {".yolo-planning/p/01-01.summary.jsonl": "{}"})
    command = "echo '{}' > .yolo-planning/p/01-01.summary.jsonl; ls"
    assert told("validate-summary", tmp_path, command=command) == (
        "SUMMARY validation: Missing 'p' (phase) field. Missing 's' (status) field."
        " Missing 'fm' (files_modified) field."
    )


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("---\nphase: 1\n---\n## What Was Built\n## Files Modified\n", []),
        ("## What Was Built\n## Files Modified\n", ["Missing YAML frontmatter."]),
        (
            "---\nnever closed\n",
            [
                "Missing YAML frontmatter.",
                "Missing '## What Was Built'.",
                "Missing '## Files Modified'.",
            ],
        ),
    ],
)
def test_a_markdown_summary_has_its_sections(tmp_path: Path, text: str, lacks: list[str]) -> None:
    fill(tmp_path, {".yolo-planning/01-SUMMARY.md": text})
    advice = told("validate-summary", tmp_path, file_path=".yolo-planning/01-SUMMARY.md")
    assert advice == (f"SUMMARY validation: {' '.join(lacks)}" if lacks else "")


def test_the_summary_of_a_book_is_met_with_silence(tmp_path: Path) -> None:
    """mdBook and GitBook keep their table of contents in `SUMMARY.md`."""
    fill(tmp_path, {"src/SUMMARY.md": "# Summary"})
    assert told("validate-summary", tmp_path, file_path="src/SUMMARY.md") == ""


def test_a_file_that_is_no_summary_or_not_there_is_met_with_silence(tmp_path: Path) -> None:
    fill(tmp_path, {".yolo-planning/a.jsonl": "torn"})
    for name in ("a.jsonl", "gone.summary.jsonl"):
        assert told("validate-summary", tmp_path, file_path=f".yolo-planning/{name}") == ""


# --- validate-frontmatter --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\ndescription: one line\nname: x\n---\n", ""),
        ("---\nname: x\n---\ndescription:\n", ""),
        ("no front matter\n", ""),
        ("---\ndescription:\n---\n", "is empty. "),
        ('---\ndescription: ""\n---\n', "is empty. "),
        ("---\ndescription: |\n  two\n  lines\n---\n", "must be a single line. "),
        ("---\ndescription: >-\n---\n", "must be a single line. "),
        ("---\ndescription:\n  below\n---\n", "must be a single line. "),
        ("---\ndescription:\n", "is empty. "),
        ("---\ndescription: first\n  second\n---\n", "must be a single line. "),
    ],
)
def test_a_description_stands_on_one_line(tmp_path: Path, text: str, said: str) -> None:
    fill(tmp_path, {"agent.md": text})
    advice = told("validate-frontmatter", tmp_path, file_path="agent.md")
    phrase = f"Frontmatter warning: description field in agent.md {said}"
    assert advice.startswith(phrase) if said else advice == ""


def test_only_markdown_has_front_matter(tmp_path: Path) -> None:
    fill(tmp_path, {"agent.txt": "---\ndescription:\n---\n"})
    assert told("validate-frontmatter", tmp_path, file_path="agent.txt") == ""
