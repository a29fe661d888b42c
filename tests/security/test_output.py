"""No byte of a hostile name or content reaches a terminal as it is, whatever shows it. See
docs/dev/faults.md#f52 and #f56.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.e2e.artifacts import PLANNING, artifact
from tests.e2e.daemon import Daemon, until
from tests.e2e.history import History
from tests.e2e.repo import Repo
from tests.security.asking import Question, Said, ask
from tests.security.every_verb import NOT_ASKED, lines
from tests.security.verbs import PHASE, READERS, of_hosts, questions
from tests.support.sample import sample_of
from yolo_fs.protocol.verbs import OWN_VERB_BY_NAME

Start = Callable[..., Daemon]
ALL = bool(os.environ.get("YOLO_SECURITY"))
SHOWN = (
    "status",
    "status --json",
    "events",
    "validate",
    "validate --format sarif",
    "resume",
    "doctor",
    "run --once",
)

NAMES = (
    b"-rf", b"--help", b":(exclude)x.jsonl", b"a\nb.jsonl", b"\x1b[2Jclear.jsonl", b"caf\xe9.jsonl", b"*.jsonl",
    b"critique.jsonl ", b" critique.jsonl", b"critique.jsonl\r", "critique\u202e.jsonl".encode(), b"%s%n.jsonl",
    b"$(touch pwned).jsonl", b"`id`.jsonl", b"; rm -rf x.jsonl", b"01-01.plan.jsonl\n", b"\xff\xfe", b"x" * 255,
    "kritik\u00e9.jsonl".encode(), b"01-\xd9\xa0\xd9\xa1.plan.jsonl", b"\"quoted\".jsonl", b"tab\t.jsonl",
    b".git ", b".GIT", b"git~1", ".g\u200cit".encode(), b".git::$INDEX_ALLOCATION", b"\x9b2J.jsonl",
    b"\x1b]8;;evil:\x07link.jsonl", "\u2066critique\u2069.jsonl".encode(), b"\x7f.jsonl",
)  # fmt: skip
FOLDER = b"02-\x1b]0;title\x07"
HOSTILE = (
    "\x1b[31mred\x1b[0m \x07 \x9b2J \u202e\u2066 \r overwritten \x7f \x1b]52;c;eA==\x07 \u2028"
)


def test_hostile_names_are_no_artifacts_and_stop_nothing(repo: Repo, start: Start) -> None:
    one, history, daemon = artifact("critique", 0), History(repo), start(repo)
    planted = set()
    for folder in (
        f"{PLANNING}/phases/01-phase-1".encode(),
        PLANNING.encode(),
        b"documents/handoffs",
    ):
        planted |= plant_names(repo, folder, one.data)
    planted |= plant_names(
        repo, f"{PLANNING}/phases/".encode() + FOLDER, one.data, [b"HANDOFF.md", b"critique.jsonl"]
    )
    repo.write(one)
    daemon.wait_committed([one])
    until(lambda: not repo.look("diff", "--cached", "--name-only"), "the index has followed")
    repo.git(
        "add", "-A", "--", "documents", f"{PLANNING}/phases", ":(exclude,icase)*git*"
    )  # git itself refuses these
    everything = questions(READERS if ALL else SHOWN) + of_hosts(
        str(repo.root), f"{PHASE}/\x1b[2J\u202e.jsonl"
    )
    assert_clean(ask(repo, [*everything, *named(repo)]))
    assert daemon.stop() == 0
    committed = {path for commit in history.commits() for *_, path in commit.changes}
    assert one.path in committed
    assert not [path for path in committed if path in planted or path.startswith('"')]
    assert ALL or committed == {one.path}  # some of all the commands write as well


def plant_names(repo: Repo, folder: bytes, data: bytes, names: Sequence[bytes] = NAMES) -> set[str]:
    """Write files of hostile names; return their paths."""
    place = os.fsencode(repo.root) + b"/" + folder
    os.makedirs(place, exist_ok=True)
    for name in names:
        with open(place + b"/" + name, "wb") as file:
            file.write(data)
    return {os.fsdecode(folder + b"/" + name) for name in names}


def named(repo: Repo) -> list[Question]:
    """Return commands that are told a hostile name, as a shell completes it, and git's own hooks on what is staged."""
    wild = f"{PHASE}/\x1b[2Jclear.jsonl"
    message = repo.file("message", f"{HOSTILE}\n")
    lines = [
        ("escalate", "open", HOSTILE),
        ("validate", "--", wild), ("validate", "--json", "--", wild), ("validate", "--type", HOSTILE, "README.md"),
        ("may", HOSTILE, "read", wild), ("may", "dev", "read", wild), ("handoff", "check", "--", wild),
        ("envelope", "check", "--", wild), ("envelope", "show", HOSTILE), ("gate", "why", HOSTILE),
        ("status", "--at", HOSTILE), ("verify", HOSTILE), ("schema", "show", HOSTILE),
        ("phase", "new", HOSTILE), ("dept", "update", "--dept", HOSTILE), ("task", "claim", HOSTILE), (HOSTILE,),
        ("status", f"--{HOSTILE}"), ("status", "-C", HOSTILE), ("events", "--type", HOSTILE), ("compat", HOSTILE),
        ("compat", "dept-status", "--dept", HOSTILE), ("compat", "validate-plan", wild), ("hook", HOSTILE),
        ("git-hook", "pre-commit"), ("git-hook", "commit-msg", str(message)), ("git-hook", HOSTILE),
        ("message", "route", HOSTILE, "lead", "architect"), ("workflow", "skip", HOSTILE), ("setup", HOSTILE),
        ("resume", "--role", HOSTILE), ("commit", "--task", HOSTILE, "--type", "feat", "-m", HOSTILE),
    ]  # fmt: skip
    asked = [Question(words) for words in (lines if ALL else lines[::4])]
    asked += [Question(("message", "check", "-"), HOSTILE), Question(("message", "check", "-"), json.dumps({"type": HOSTILE}))]  # fmt: skip
    asked += [
        Question(("hook",), json.dumps({"hook_event_name": HOSTILE})),
        Question(("hook", "stop"), HOSTILE),
    ]
    asked += [Question(("validate", "--type", "artifact/plan", "-"), HOSTILE)]
    return asked


def test_hostile_contents_are_shown_escaped(repo: Repo, start: Start) -> None:
    decisions, critique, summary = (
        artifact(kind, 0) for kind in ("decisions", "critique", "summary")
    )
    daemon = start(repo)
    repo.write(
        decisions._replace(data=decisions.data.replace(b"architect", b"\\u001b[31mred\\u0007\\u202e\\r").replace(b"Opaque tokens", b"\\u009b2J")),
        critique._replace(data=critique.data.replace(b"gap", HOSTILE.encode())),
        summary._replace(data=summary.data.replace(b'"built"', b'"\\u001b]0;title\\u0007"')),
    )  # fmt: skip
    (repo.root / PHASE / "HANDOFF.md").write_text(f"---\nhandoff:\n  objective: {HOSTILE}\n---\n")
    (repo.root / PHASE / "escalation.jsonl").write_text(
        json.dumps({"id": HOSTILE, "sb": HOSTILE}) + "\n"
    )
    (repo.root / PHASE / ".dept-status-backend.json").write_text(
        json.dumps({"dept": HOSTILE, "step": HOSTILE})
    )
    (repo.root / PHASE / ".execution-state.json").write_text(
        json.dumps({"phase": HOSTILE, "steps": HOSTILE})
    )
    (repo.root / PLANNING / "state.json").write_text(json.dumps({"ms": HOSTILE, "ph": HOSTILE}))
    (repo.root / PLANNING / ".active-agent").write_text(HOSTILE)
    daemon.wait_for("artifact.rejected", critique.path)
    daemon.wait_for("artifact.rejected", summary.path)
    until(lambda: repo.standing(decisions.path)[0] in ("committed", "rejected"), "judged")
    everything = questions(READERS if ALL else SHOWN) + of_hosts(
        str(repo.root), f"{PHASE}/critique.jsonl"
    )
    assert_clean(ask(repo, everything))
    derived = lines(HOSTILE, f"{PHASE}/critique.jsonl")
    assert_clean(ask(repo, [Question(words) for words in (derived if ALL else derived[::5])]))
    (repo.root / PLANNING / "config.json").write_text(
        json.dumps({HOSTILE: HOSTILE, "effort": HOSTILE})
    )
    assert_clean(
        ask(
            repo,
            questions(
                ("status", "validate", "run --once", "status --json", "doctor")
                if ALL
                else ("status",)
            ),
        )
    )


def test_a_repair_is_shown_escaped_and_git_takes_it_where_nothing_had_to_be(
    repo: Repo, rng: random.Random
) -> None:
    plain, wild = artifact("critique", 0), artifact("critique", 1)
    old = b'{"id": "C1", "cat": "gap", "sev": "major", "q": "x", "ctx": "SHOWN", "sug": "y", "st": "open"}'
    repo.write(plain._replace(data=old + b"\n\n"))
    said = ask(repo, [Question(("fix", plain.path))])[0]
    assert said.out.startswith(b"--- a/") and said.err.count(b"escaped") == 0
    subprocess.run(["git", "apply", "--check", "-"], cwd=repo.root, input=said.out, check=True)
    for hidden in sample_of((*"\u202e\u2028\u200b\x9b\ufeff\u2066\x7f", "\\u001b"), 4, rng):
        repo.write(wild._replace(data=old.replace(b"SHOWN", hidden.encode()) + b"\n\n"))
        said, exact = ask(
            repo, [Question(("fix", wild.path)), Question(("fix", wild.path, "--json"))]
        )
        assert_clean([said, exact])
        assert said.out.startswith(b"--- a/"), hidden
        assert (b"--json" in said.err) == (hidden != "\\u001b")
        diff = json.loads(exact.out)["data"]["repaired"][0]["diff"]
        subprocess.run(
            ["git", "apply", "--check", "-"], cwd=repo.root, input=diff.encode(), check=True
        )


def test_what_was_kept_is_shown_escaped_and_restored_as_it_was(repo: Repo) -> None:
    content = f"first\n{HOSTILE}\ttab\r\n".encode()
    (repo.root / PLANNING).mkdir(exist_ok=True)
    (repo.root / "wild.txt").write_bytes(content)
    told = {"cwd": str(repo.root), "hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_input": {"command": "git clean -fd"}}  # fmt: skip
    kept = Question(("hook", "pre-tool-use"), json.dumps(told))
    shown = ask(repo, [kept, Question(("kept", "show", "1"))])[1]
    assert b"\\u202e" in shown.out and b"kept restore" in shown.err
    assert_clean([shown._replace(out=shown.out.replace(b"\r\n", b"\n").replace(b"\t", b" "))])
    (repo.root / "wild.txt").unlink()
    ask(repo, [Question(("kept", "restore", "1"))])
    assert (repo.root / "wild.txt").read_bytes() == content


def assert_clean(answers: Sequence[Said]) -> None:
    wild = {}
    for said in answers:
        text = (said.out + said.err).decode("utf-8", "surrogateescape")
        found = {char for char in text if char != "\n" and unicodedata.category(char) in HIDDEN}
        if found:
            wild[said.question.words, said.question.stdin[:40]] = (
                found,
                said.out[:300],
                said.err[:300],
            )
    assert wild == {}


HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Control, format (bidirectional), lone surrogate (a byte that is no UTF-8), private use, line and paragraph separator."""


def test_the_measure_itself_sees_a_raw_byte(tmp_path: Path) -> None:
    for raw in (
        b"\x1b[2J",
        b"caf\xe9",
        "\u202e".encode(),
        b"\r",
        "\u2028".encode(),
        "\x9b".encode(),
    ):
        question = Question(("x",))
        try:
            assert_clean([Said(question, 0, raw, b"")])
        except AssertionError:
            continue
        raise AssertionError(raw)


def test_every_verb_is_asked_or_it_is_said_why_not() -> None:
    asked = {words[: name.count(" ") + 1] for words in lines("x", "y") for name in OWN_VERB_BY_NAME
             if " ".join(words).startswith(name)}  # fmt: skip
    missing = {name for name in OWN_VERB_BY_NAME if tuple(name.split()) not in asked}
    assert missing == NOT_ASKED.keys()
