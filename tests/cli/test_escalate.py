"""`escalate open`, `raise`, `resolve`, `list` and `tick`: what each level sees, and the exit code it goes by."""

from __future__ import annotations

import json
import os
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import EXAMPLES
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit
from yolo_fs.schemas.messages.catalogue import read_message

NAME = "ESC-01-02-T3"
BLOCKER = {"type": "dev_blocker", "task": "01-02/T3", "plan_id": "01-02", "blocker": "The gateway strips the path",
           "needs": "another path", "attempted": ["curl shows Path=/"]}  # fmt: skip
WORDS = ("--reason", "not in the spec", "--evidence", "seen", "--recommendation", "decide")
LOG = ".yolo-planning/phases/01-auth/escalation.jsonl"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    tree = tmp_path / "work tree"
    subprocess.run(["git", "init", "-q", "-b", "main", str(tree)], check=True)
    (tree / ".yolo-planning/phases/01-auth").mkdir(parents=True)
    return tree


def escalate(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = run(["escalate", words[0], "--json", "-C", str(root), *words[1:]])
    return code, json.loads(capsys.readouterr().out)


def message(root: Path, value: dict[str, Any]) -> tuple[str, str]:
    path = root / f"{value['type']}.json"
    path.write_text(json.dumps(value))
    return "--message", path.name


def test_message_opens_and_the_next_message_comes_out(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = escalate(root, capsys, "open", *message(root, BLOCKER))
    assert code == Exit.DONE and said["ok"] and said["schema"] == "yolo-fs/escalate-open/1"
    assert said["data"]["message"] == BLOCKER and said["data"]["escalation"]["holder"] == "senior"
    code, said = escalate(root, capsys, "raise", NAME, "--by", "senior", *WORDS)
    assert code == Exit.DONE and read_message(said["data"]["message"])[1] == ()
    assert (said["data"]["message"]["to"], said["data"]["log"]) == ("lead", LOG)


def test_without_a_name_the_holder_acts(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    escalate(root, capsys, "open", *message(root, BLOCKER))
    holders = []
    for _ in range(3):
        code, said = escalate(root, capsys, "raise", NAME, *WORDS, "--option", "a", "--option", "b")
        assert code == Exit.DONE, said["findings"]
        holders.append((said["data"]["line"]["agent"], said["data"]["escalation"]["holder"]))
    assert holders == [("senior", "lead"), ("lead", "architect"), ("architect", "user")]
    code, said = escalate(root, capsys, "resolve", NAME, "--decision", "a")
    assert (code, said["data"]["line"]["agent"]) == (Exit.DONE, "user")


def told(root: Path) -> list[tuple[str, str]]:
    lines = map(json.loads, (root / LOG).read_text().splitlines())
    return [(line["agent"], line["tgt"]) for line in lines]


@pytest.mark.parametrize(
    ("departments", "up"),
    [
        (["backend"], ["dev", "senior", "lead", "architect", "user"]),
        (["backend", "frontend"], ["dev", "senior", "lead", "architect", "owner", "user"]),
    ],
)
def test_a_question_takes_three_commands_from_a_dev_to_the_user_and_back(
    root: Path, departments: list[str], up: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    known = {name: name in departments for name in ("backend", "frontend", "uiux")}
    config = {"departments": known, "department_workflow": "parallel"}
    (root / ".yolo-planning/config.json").write_text(json.dumps(config))
    assert escalate(root, capsys, "open", *message(root, BLOCKER))[0] == Exit.DONE
    words = (*WORDS, "--option", "red", "--option", "blue", "--to", "user")
    code, said = escalate(root, capsys, "raise", NAME, *words)
    assert (code, said["data"]["escalation"]["holder"]) == (Exit.DONE, "user"), said["findings"]
    assert run(["answer", NAME, "blue", "-C", str(root)]) == Exit.DONE
    down = up[::-1]
    assert told(root) == [*pairwise(up), *pairwise(down)]


def test_who_has_a_name_hands_a_question_to_the_next_level_only(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    escalate(root, capsys, "open", *message(root, BLOCKER))
    code, said = escalate(root, capsys, "raise", NAME, "--by", "senior", *WORDS, "--to", "user")
    assert (code, said["findings"][0]["reason"]) == (Exit.FINDINGS, "wrong_level")
    assert told(root) == [("dev", "senior")]


def test_nobody_is_handed_a_question_who_is_no_level_of_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    escalate(root, capsys, "open", *message(root, BLOCKER))
    code, said = escalate(root, capsys, "raise", NAME, *WORDS, "--to", "tester")
    assert (code, said["findings"][0]["reason"]) == (Exit.FINDINGS, "wrong_level")
    assert told(root) == [("dev", "senior")]


def test_a_level_that_refuses_keeps_the_question(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    escalate(root, capsys, "open", *message(root, BLOCKER))
    code, said = escalate(root, capsys, "raise", NAME, *WORDS, "--to", "user")
    assert code == Exit.FINDINGS  # an Architect gives options
    assert told(root)[-1] == ("lead", "architect")
    assert "option" in json.dumps(said["findings"])


def test_whoever_hands_a_question_up_without_words_of_its_own_asks_the_same_question(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    escalate(root, capsys, "open", *message(root, BLOCKER))
    code, said = escalate(root, capsys, "raise", NAME, *WORDS[2:])
    assert code == Exit.DONE, said["findings"]
    assert said["data"]["message"]["issue"] == BLOCKER["blocker"]


def test_a_commit_from_before_the_escalation_shows_no_progress(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def commit(date: str, subject: str = "x") -> str:
        env = {**os.environ, "GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date}
        words = (
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@e",
            "commit",
            "-qm",
            subject,
            "--allow-empty",
        )
        subprocess.run(["git", "-C", str(root), *words], check=True, env=env)
        head = ["git", "-C", str(root), "rev-parse", "HEAD"]
        return subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()

    old = commit("2026-01-01T00:00:00Z")
    escalate(root, capsys, "open", *message(root, BLOCKER))
    escalate(root, capsys, "resolve", NAME, "--decision", "another path")
    code, said = escalate(root, capsys, "resolve", NAME, "--by", "dev", "--commit", old)
    assert code == Exit.FINDINGS
    assert f"{old} is older than the escalation" in json.dumps(said["findings"])
    code, said = escalate(root, capsys, "resolve", NAME, "--by", "dev", "--commit", "HEAD~0")
    assert f"{old[:12]} is older than the escalation" in json.dumps(said["findings"])
    code, said = escalate(root, capsys, "resolve", NAME, "--by", "dev", "--commit", "nothing")
    assert "nothing is not a commit of this repository" in json.dumps(said["findings"])
    other = commit("2099-01-01T00:00:00Z", "feat(01-07): T1 work of others")
    code, said = escalate(root, capsys, "resolve", NAME, "--by", "dev", "--commit", other)
    assert f"{other} is work on 01-07" in json.dumps(said["findings"])
    new = commit("2099-01-01T00:00:00Z")
    code, said = escalate(root, capsys, "resolve", NAME, "--by", "dev", "--commit", new)
    assert (code, said["data"]["escalation"]["standing"]) == (Exit.DONE, "resolved")


def commit_file(root: Path, path: str, text: str, subject: str) -> str:
    """Commit a file of this text, and return the commit."""

    def git(*words: str) -> str:
        given = ("git", "-C", str(root), "-c", "user.name=T", "-c", "user.email=t@e", *words)
        return subprocess.run(given, check=True, capture_output=True, text=True).stdout.strip()

    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    git("add", "--", path)
    git("commit", "-qm", subject, "--", path)
    return git("rev-parse", "HEAD")


def test_only_a_commit_of_the_plan_on_this_branch_shows_that_its_task_goes_on(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ".yolo-planning/phases/01-auth"
    mh = {"tr": ["It works"], "ar": [], "kl": []}
    header = {"p": "01", "n": "02", "t": "Login", "w": 1, "d": [], "obj": "Log in", "mh": mh}
    task = {"id": "T3", "tp": "auto", "a": "Do", "f": ["src/login"], "v": "Look", "done": "Done"}
    plan = "".join(json.dumps(line) + "\n" for line in (header, task))
    commit_file(root, f"{folder}/01-02.plan.jsonl", plan, "docs(01): plan 01-02")
    escalate(root, capsys, "open", *message(root, BLOCKER))
    escalate(root, capsys, "resolve", NAME, "--decision", "another path")

    def refused(commit: str) -> str:
        code, said = escalate(root, capsys, "resolve", NAME, "--by", "dev", "--commit", commit)
        assert code == Exit.FINDINGS
        return json.dumps(said["findings"])

    for path, subject in (
        ("README.md", "docs: other"),
        ("src/logins.ts", "feat(01): beside it"),
        (f"{folder}/critique.jsonl", "docs(01): critique and gap analysis"),
    ):
        misfit = commit_file(root, path, "{}\n", subject)
        assert "neither names 01-02/T3 nor changes a file of its plan" in refused(misfit), subject
    aside = commit_file(root, "src/login/a.ts", "aside\n", "feat(01-02): T3 elsewhere")
    back = ("git", "-C", str(root), "reset", "-q", "--hard", "HEAD~1")
    subprocess.run(back, check=True)
    assert f"{aside} is not on this branch" in refused(aside)
    longer = commit_file(root, "README.md", "more\n", "docs: of ESC-01-02-T33")
    assert "nor changes a file of its plan" in refused(longer)
    work = commit_file(root, "src/login/a.ts", "work\n", "fix: the path")
    code, said = escalate(root, capsys, "resolve", NAME, "--by", "dev", "--commit", work)
    assert (code, said["data"]["escalation"]["standing"]) == (Exit.DONE, "resolved")


def test_whoever_resolves_what_is_resolved_is_not_told_that_somebody_holds_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    escalate(root, capsys, "open", *message(root, BLOCKER))
    escalate(root, capsys, "resolve", NAME, "--decision", "another path")
    commit = commit_file(root, "a.ts", "work\n", "feat(01-02): T3 the path")
    words = ["escalate", "resolve", NAME, "--by", "dev", "--commit", commit, "-C", str(root)]
    assert run(words) == Exit.DONE
    capsys.readouterr()
    assert run([*words, "--reason", "again"]) == Exit.FINDINGS
    shown = capsys.readouterr()
    assert "resolved already" in shown.out + shown.err
    assert "still holds" not in shown.out + shown.err


def test_who_resolves_without_a_decision_is_told_to_give_one_and_is_sent_to_nobody(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    escalate(root, capsys, "open", *message(root, BLOCKER))
    before = (root / LOG).read_text()
    code, said = escalate(root, capsys, "resolve", NAME, "--by", "senior", "--reason", "blue")
    (found,) = said["findings"]
    assert (code, found["reason"]) == (Exit.USAGE, "bad_usage")
    assert f"yolo-fs escalate resolve {NAME} --by senior --decision" in found["hint"]
    assert (root / LOG).read_text() == before


@pytest.mark.proves("002:114")
def test_the_failed_audit_of_one_department_lets_no_other_go_past_the_chain(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit = {"r": "FAIL", "findings": 1, "critical": 1, "dt": "2026-02-20"}
    (root / LOG).with_name("security-audit.jsonl").write_text(json.dumps(audit) + "\n")
    fails = ("open", "--task", "01-02/T4", "--fail", *WORDS)
    code, said = escalate(root, capsys, *fails, "--from", "fe-security")
    assert code == Exit.FINDINGS
    assert "no security audit of frontend" in said["findings"][0]["message"]
    assert escalate(root, capsys, *fails, "--from", "security")[0] == Exit.DONE


def test_a_refused_report_leaves_no_log(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = escalate(root, capsys, "open", "--task", "01-01/T1", "--reason", "not in the spec")

    assert code == Exit.FINDINGS and said["findings"]
    assert not (root / LOG).exists()


@pytest.mark.proves("002:157")
def test_a_task_that_no_plan_of_the_phase_has_is_refused(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Path(root, LOG).parent / "fe-01-02.plan.jsonl"
    plan.write_text('{"p":"01","n":"02"}\n{"id":"T3"}\n')

    code, said = escalate(root, capsys, "open", "--task", "01-02/T9", *WORDS)
    assert (code, said["findings"][0]["reason"]) == (Exit.USAGE, "unknown_name")
    assert "01-02/T3" in said["findings"][0]["hint"]
    assert not Path(root, LOG).exists()
    assert escalate(root, capsys, "open", "--task", "01-02/T3", *WORDS)[0] == Exit.DONE


def raise_to_architect(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    escalate(root, capsys, "open", *message(root, BLOCKER))
    for level in ("senior", "lead"):
        escalate(root, capsys, "raise", NAME, "--by", level, *WORDS)


@pytest.mark.proves("000:317")
def test_the_reasons_of_whoever_decided_go_down_with_the_decision(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raise_to_architect(root, capsys)
    why = "the gateway belongs to another team"
    decided = ("--decision", "Path /", "--reason", why)
    told = [escalate(root, capsys, "resolve", NAME, "--by", "architect", *decided)[1]]
    told.append(escalate(root, capsys, "resolve", NAME, "--by", "lead", "--decision", "Path /")[1])

    assert [one["data"]["message"]["rationale"] for one in told] == [why, why]


def test_whole_round_trip_by_messages(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    up = {"type": "escalation", "from": "senior", "to": "lead", "issue": "not in the spec", "evidence": ["seen"],
          "recommendation": "decide", "severity": "major"}  # fmt: skip
    decided = {"type": "escalation_resolution", "original_escalation": NAME, "decision": "Path /",
               "rationale": "cheaper", "action_items": ["Set Path=/"], "resolved_by": "lead"}  # fmt: skip
    fix = {"f": "src/a.ts", "ln": 4, "issue": "path", "fix": "Set Path=/"}
    changes = {"type": "code_review_changes", "plan_id": "01-02", "cycle": 1, "changes": [fix], "must_fix": [],
               "rerun_tests": True}  # fmt: skip
    progress = {"type": "dev_progress", "task": "01-02/T3", "plan_id": "01-02", "commit": "", "status": "partial",
                "concerns": []}  # fmt: skip
    assert escalate(root, capsys, "open", *message(root, BLOCKER))[0] == Exit.DONE
    assert escalate(root, capsys, "raise", NAME, *message(root, up))[0] == Exit.DONE
    assert (
        escalate(root, capsys, "resolve", NAME, *message(root, decided))[1]["data"]["message"]
        == decided
    )
    assert (
        escalate(root, capsys, "resolve", NAME, *message(root, changes))[1]["data"]["message"]
        == changes
    )
    code, said = escalate(root, capsys, "resolve", NAME, *message(root, progress))
    assert code == Exit.DONE and said["data"]["escalation"]["standing"] == "resolved"
    assert said["data"]["escalation"]["action_items"] == ["src/a.ts:4: Set Path=/"]


@pytest.mark.parametrize(
    "words, reason, hint",
    [
        (("raise", NAME, "--by", "lead", *WORDS), "wrong_level", "It is with senior"),
        (("raise", NAME, "--by", "senior", "--to", "architect", *WORDS), "wrong_level", "Ask lead"),
        (("raise", NAME, "--by", "senior"), "missing_key", "Add what was seen"),
        (("resolve", NAME, "--by", "user", "--decision", "x"), "wrong_level", "It is with senior"),
        (
            ("resolve", NAME, "--by", "senior", "--decision", "x", "--to", "lead"),
            "wrong_level",
            "raise it",
        ),
        (
            ("resolve", "ESC-01-02-T9", "--by", "senior", "--decision", "x"),
            "unknown_reference",
            "escalate open",
        ),
        (
            ("open", "--task", "01-02/T4", "--from", "dev", "--to", "lead", *WORDS),
            "wrong_level",
            "Ask Senior",
        ),
        (("open", "--task", "01-02/T3", *WORDS), "duplicate_id", "add what is new there"),
        (
            ("open", "--task", "01-02/T4", "--from", "security", "--fail", *WORDS),
            "wrong_level",
            "ask the Lead",
        ),
    ],
)
def test_refusal_says_whom_to_ask(
    root: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], reason: str, hint: str
) -> None:
    escalate(root, capsys, "open", *message(root, BLOCKER))
    before = (root / LOG).read_bytes()
    code, said = escalate(root, capsys, *words)
    assert code == Exit.FINDINGS and not said["ok"]
    assert said["findings"][0]["reason"] == reason and hint in said["findings"][0]["hint"]
    assert (root / LOG).read_bytes() == before


def test_second_resolution_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    escalate(root, capsys, "open", *message(root, BLOCKER))
    escalate(root, capsys, "raise", NAME, "--by", "senior", *WORDS)
    assert (
        escalate(root, capsys, "resolve", NAME, "--by", "lead", "--decision", "Path /")[0]
        == Exit.DONE
    )
    code, said = escalate(root, capsys, "resolve", NAME, "--by", "lead", "--decision", "Strip it")
    assert (code, said["findings"][0]["reason"]) == (Exit.FINDINGS, "state_conflict")
    assert "decided already: Path /" in said["findings"][0]["message"]


def test_a_decision_goes_down_as_it_was_taken(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raise_to_architect(root, capsys)
    escalate(root, capsys, "resolve", NAME, "--by", "architect", "--decision", "Path /")
    before = (root / LOG).read_bytes()
    words = ("resolve", NAME, "--by", "lead", "--decision")
    code, said = escalate(root, capsys, *words, "Strip it")
    assert (code, said["findings"][0]["reason"]) == (Exit.FINDINGS, "state_conflict")
    assert "decided already: Path /" in said["findings"][0]["message"]
    assert (root / LOG).read_bytes() == before
    assert escalate(root, capsys, *words, "Path /")[0] == Exit.DONE


@pytest.mark.parametrize(
    "words, code",
    [
        (("open", "--task", "third"), Exit.USAGE),
        (("open", "--task", "07-01/T1", *WORDS), Exit.USAGE),
        (("raise", "ESC-1"), Exit.USAGE),
        (("open", "--message", "nowhere.json"), Exit.USAGE),
        (("list", "--phase", "9"), Exit.USAGE),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(
    root: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: Exit
) -> None:
    assert escalate(root, capsys, *words)[0] == code


def test_message_of_another_type_or_about_another_task_is_refused(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert escalate(root, capsys, "raise", NAME, *message(root, BLOCKER))[0] == Exit.USAGE
    decided = {"type": "escalation_resolution", "original_escalation": "ESC-01-02-T9", "decision": "x",
               "rationale": "y", "action_items": [], "resolved_by": "lead"}  # fmt: skip
    assert escalate(root, capsys, "resolve", NAME, *message(root, decided))[0] == Exit.USAGE
    assert (
        escalate(root, capsys, "open", *message(root, BLOCKER | {"blocker": ""}))[0]
        == Exit.UNREADABLE
    )


def test_list_shows_each_level_and_what_is_wrong_with_the_log(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    escalate(root, capsys, "open", *message(root, BLOCKER))
    escalate(root, capsys, "raise", NAME, "--by", "senior", *WORDS)
    code, said = escalate(root, capsys, "list")
    (one,) = said["data"]["01-auth"]
    assert code == Exit.DONE and [each["agent"] for each in one["history"]] == ["dev", "senior"]
    assert one["owed"].startswith("Checks decision authority") and one["deadline"]
    (root / LOG).write_text(
        (root / LOG).read_text() + '{"id":"ESC-01-02-T3","agent":"dev","tgt":"user","st":"escal\n'
    )
    code, said = escalate(root, capsys, "list", "--phase", "1")
    assert code == Exit.FINDINGS and said["findings"][0]["line"] == 3
    assert said["data"]["01-auth"][0]["holder"] == "lead"


def test_people_see_the_story(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    escalate(
        root, capsys, "open", *message(root, BLOCKER | {"blocker": "a \u001b[31mred\u202e trap"})
    )
    assert run(["escalate", "list", "-C", str(root)]) == Exit.DONE
    shown = capsys.readouterr().out
    assert "01-auth ESC-01-02-T3 blocking, rising: with senior" in shown
    assert "dev -> senior (opens): a \\x1b[31mred\\u202e trap" in shown


def test_nothing_to_list_and_nothing_due(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert escalate(root, capsys, "list") == (
        0, {"ok": True, "data": {}, "findings": [], "schema": "yolo-fs/escalate-list/1"}
    )  # fmt: skip
    assert escalate(root, capsys, "tick")[1]["data"] == []


def test_tick_hands_up_what_an_old_log_says(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    escalate(root, capsys, "open", *message(root, BLOCKER))
    log = root / LOG
    line = json.loads(log.read_text()) | {"dt": "2026-02-19T11:00:00Z"}
    log.write_text(json.dumps(line) + "\n")
    _, said = escalate(root, capsys, "tick")
    assert [(one["line"]["tgt"], one["warning"]["current_level"]) for one in said["data"]] == [
        ("lead", "senior")
    ]
    assert escalate(root, capsys, "tick")[1]["data"] == []


def test_whoever_opens_nothing_is_told_which_option_names_the_task(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["escalate", "open", "--reason", "blocked"]) == 2
    assert "Missing option '--task'" in capsys.readouterr().err


@pytest.mark.parametrize(("agent", "above"), [("dev", "senior"), ("fe-dev", "fe-senior")])
def test_of_two_plans_of_one_number_a_task_is_blocked_in_the_department_that_says_so(
    root: Path, capsys: pytest.CaptureFixture[str], agent: str, above: str
) -> None:
    config = {"departments": {"frontend": True}, "department_workflow": "parallel"}
    (root / ".yolo-planning/config.json").write_text(json.dumps(config))
    for name in ("01-02.plan.jsonl", "fe-01-02.plan.jsonl"):
        (root / f".yolo-planning/phases/01-auth/{name}").touch()
    code, said = escalate(root, capsys, "open", "--task", "01-02/T3", "--as", agent, *WORDS)
    assert code == Exit.DONE, said["findings"]
    line = said["data"]["line"]
    assert (line["agent"], line["tgt"]) == (agent, above)
    assert said["data"]["escalation"]["holder"] == above


def test_of_two_plans_of_one_number_only_work_of_its_own_department_ends_an_escalation(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"departments": {"frontend": True}, "department_workflow": "parallel"}
    (root / ".yolo-planning/config.json").write_text(json.dumps(config) + "\n")
    plan = (EXAMPLES / "plan/ok/enriched.jsonl").read_text().splitlines()
    header, task = json.loads(plan[0]) | {"p": "01", "n": "02"}, json.loads(plan[1])
    for prefix, folder in (("", "backend"), ("fe-", "frontend")):
        lines = header | {"fm": []}, task | {"id": "T3", "f": [f"{folder}/a.ts"]}
        path = root / f".yolo-planning/phases/01-auth/{prefix}01-02.plan.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def commit(subject: str) -> None:
        identity = ("-c", "user.name=T", "-c", "user.email=t@x")
        for words in (("add", "-A"), (*identity, "commit", "-q", "-m", subject)):
            subprocess.run(["git", "-C", root, *words], check=True)

    def work(folder: str) -> None:
        (root / folder).mkdir()
        (root / folder / "a.ts").write_text("export {}\n")
        commit("feat(01-02): T3 do it")

    def standing() -> str:
        escalate(root, capsys, "tick")
        (one,) = escalate(root, capsys, "list")[1]["data"]["01-auth"]
        return str(one["standing"])

    commit("docs(01): plan 01-02")
    escalate(root, capsys, "open", "--task", "01-02/T3", "--as", "dev", *WORDS)
    escalate(root, capsys, "resolve", NAME, "--by", "senior", "--decision", "a")
    work("frontend")
    assert standing() == "descending"
    shows = ("resolve", NAME, "--by", "dev", "--commit", "HEAD")
    code, said = escalate(root, capsys, *shows)
    assert code == Exit.FINDINGS and "another department" in json.dumps(said["findings"])
    work("backend")
    assert standing() == "resolved"
