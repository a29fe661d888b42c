"""Before a tool runs: everyday commands pass, and each spelling of a forbidden act gets the verdict that is written down."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import EXAMPLES, THREE, Team
from yolo_fs.cli import hook_fast, hook_question
from yolo_fs.protocol.roster import AGENT_BY_NAME

FIXTURES = Path(__file__).parents[2] / "fixtures/hooks"
PHASE = ".yolo-planning/phases/01-auth"
NAMES = {
    "@P": PHASE,
    "@S": f"{PHASE}/.dept-status-backend.json",
    "@H": f"{PHASE}/.handoff-ux-complete",
    "@T": ".yolo-planning/state.json",
    "@R": ".yolo-planning",
    "⏎": "\n",
}
IGNORED = (
    "node_modules/",
    "dist/",
    "coverage/",
    "reports/",
    "*.log",
    "*.pyc",
    ".venv/",
    ".next/",
    ".nyc_output/",
    "*.bak",
)


def lines_of(path: Path) -> Iterator[str]:
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            for name, text in NAMES.items():
                line = line.replace(name, text)
            yield line


EVERYDAY = {path.stem: list(lines_of(path)) for path in sorted(FIXTURES.glob("everyday/*.txt"))}
FORBIDDEN = [line.split(" ", 2) for line in lines_of(FIXTURES / "forbidden.txt")]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CONFIG_HOME", str(home / "no config"))
        yield made_team(home)


def made_team(home: Path) -> Team:
    """Return a team of three departments with an open plan and the files that a project has."""
    team = Team(home / "work")
    for name in ("auth/tokens", "auth/keys", "config", "other", "hooks/use"):
        team.file(f"src/{name}.ts", "export {}\n")
    for name in (
        "README.md",
        "tests/auth.test.ts",
        "frontend/a.ts",
        "package.json",
        "scripts/deploy.sh",
    ):
        team.file(name, "{}\n")
    for name in ("ROADMAP.md", "REQUIREMENTS.md"):
        team.file(f".yolo-planning/{name}", "# Text\n")
    team.file(".env", "TOKEN=\n")
    team.file(".gitignore", "\n".join(IGNORED))
    team.config(THREE)
    for department in ("backend", "frontend", "uiux"):
        team.artifact(f"01-CONTEXT-{department}.md", "# Context\n")
    team.artifact(".ctx-qa.toon", "# Context\n")
    team.git("add", "-A", "-f")
    team.git("commit", "-q", "-m", "chore: begin")
    team.begin()
    team.plan()
    team.artifact(".dept-status-backend.json", "{}\n")
    return team


def verdict(team: Team, agent: str, command: str) -> str:
    """Return `denied` with the reason, `undecided` or `passes`."""
    told = {
        "hook_event_name": "PreToolUse",
        "cwd": str(team.root),
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "agent_type": agent,
    }
    answer, note, code = hook_fast.answer(json.dumps(told).encode())
    assert code == 0
    if "permissionDecisionReason" in (said := answer.get("hookSpecificOutput", {})):
        return f"denied {said['permissionDecisionReason']}"
    assert note == "" or "undecided" in note
    return "undecided" if note else "passes"


@pytest.mark.parametrize("agent", EVERYDAY)
def test_an_everyday_command_is_not_denied(team: Team, agent: str) -> None:
    name = "yolo-dev" if agent == "everybody" else f"yolo-{agent}"
    verdicts = {command: verdict(team, name, command) for command in EVERYDAY[agent]}
    denied = [row for row in verdicts.items() if row[1].startswith("denied")]
    assert not denied, "\n".join(map(str, denied))


def test_there_are_everyday_commands_of_every_role() -> None:
    assert sum(map(len, EVERYDAY.values())) >= 500
    roles = {AGENT_BY_NAME[name].role for name in EVERYDAY if name in AGENT_BY_NAME}
    assert roles >= {agent.role for agent in AGENT_BY_NAME.values()}


@pytest.mark.parametrize("agent", sorted({agent for _, agent, _ in FORBIDDEN}))
def test_a_forbidden_act_is_denied_or_said_to_be_undecided(team: Team, agent: str) -> None:
    name = "" if agent == "-" else f"yolo-{agent}"
    rows = [(wanted, command) for wanted, who, command in FORBIDDEN if who == agent]
    verdicts = [(wanted, command, verdict(team, name, command)) for wanted, command in rows]
    others = [row for row in verdicts if not row[2].startswith(row[0])]
    assert not others, "\n".join(map(str, others))


def many(unit: str, count: int) -> str:
    return "".join(unit.replace("@", str(number)) for number in range(count))


@pytest.mark.parametrize(
    "command",
    [
        "echo a " * 10_000, many("true @;", 10_000), "touch " + many("dist/a@ ", 1_001), many(": >a@;", 1_001),
        "*** Begin Patch\n" + many("*** Add File: dist/a@\n", 1_001), "cp " + many("-t a@ b@ ", 300),
        "a=xx;" + "a=$a$a;" * 100, "cat .env;" + "(" * 5_000, "cat " + many("src/auth/*[!@] ", 300) * 20,
        "find " + many("b@ ", 2_000) + many("-name a@ ", 2_000) + "-delete", "b='" + "a=x;" * 500 + "';" + "sh -c \"$b\";" * 3_000,
    ],
    ids=lambda command: command[:20],
)  # fmt: skip
def test_an_agent_is_told_to_split_what_is_too_much(team: Team, command: str) -> None:
    said = verdict(team, "yolo-dev", command)
    assert said.startswith("denied") and "split it" in said and "too large to check in time" in said
    assert not verdict(team, "", command).startswith("denied")


@pytest.mark.parametrize(
    "command",
    [
        ": " + ">dist/x.log " * 5_000, many("rm dist/a@.log;", 990), "touch " + many(f"{PHASE}/x@ ", 990),
        "cat " + many("src/auth/a@ ", 990), "rm " * 20_000, "*** Add File: " + "\t " * 30_000 + "x", "env " * 16_000,
        "python3 -c '" + "a/.-~" * 12_000 + "'", "python3 -c '" + "open(" * 12_000 + "'", "sh -c 'a b' " * 5_000,
        "find " + "-exec " * 10_000, "git " + "-C a " * 12_000, "tar " + "c" * 60_000 + "!", "{a}" * 20_000,
    ],
    ids=lambda command: command[:20],
)  # fmt: skip
def test_the_worst_commands_within_the_limits_are_judged_long_before_the_time_is_over(
    team: Team, command: str
) -> None:
    assert len(command) <= 64 * 1024
    began = time.process_time()
    said = verdict(team, "yolo-dev", f"{command}\necho x > {PHASE}/.handoff-ux-complete")
    assert said.startswith("denied"), said
    assert time.process_time() - began < hook_question.LIMIT_S / 4


ALL_NEW = ("git add .", "git add -A", "git stage --all", "cd src && git add ..", "git add -- ':/'")
FORCED = ("git add -f .", "git add -Af", "git add --force coverage", "git add -f 'coverage/*'")


@pytest.mark.parametrize(
    ("secret", "denied", "passes"),
    [
        ("new.pem", (*ALL_NEW, "git add '*.pem'", "git add -f ."), ("git add src", "git add '*.ts'")),
        ("coverage/.env.ci", FORCED, (*ALL_NEW, "git add -f src", "git add coverage")),
    ],
)  # fmt: skip
def test_no_agent_stages_a_credential_with_the_folder_that_it_lies_in(
    team: Team, secret: str, denied: tuple[str, ...], passes: tuple[str, ...]
) -> None:
    """Git keeps what was staged once, and a push publishes it; one that git ignores takes force."""
    team.file(secret, "KEY\n")
    try:
        refused = {one for one in (*denied, *passes) if "credentials" in verdict(team, "yolo-dev", one)}  # fmt: skip
    finally:
        (team.root / secret).unlink()
    assert refused == {*denied}


def test_a_rule_holds_in_every_work_tree_of_the_repository(team: Team) -> None:
    for place in ("../beside", "within"):  # an agent's host makes them within, too
        team.git("worktree", "add", "-q", "--detach", place)
        try:
            for command in (f"cat {place}/.env", f"echo x > {place}/{NAMES['@T']}", f"rm -r {place}/.yolo-planning",
                            f"cd {place}; echo x > src/other.ts"):  # fmt: skip
                assert verdict(team, "yolo-dev", command).startswith("denied"), command
            assert verdict(team, "yolo-dev", f"cat {place}/README.md") == "passes"
        finally:
            team.git("worktree", "remove", "--force", place)


def test_the_table_of_forbidden_acts_is_long() -> None:
    assert len(FORBIDDEN) >= 220


@pytest.mark.parametrize(
    ("announced", "agent", "meant"),
    [
        ("developer", "", "dev"),
        ("yolo-criitc", "", "critic"),
        ("emperor", "", "Known names: "),
        ("", "yolo-criitc", "critic"),
        ("", "yolo:yolo-dev2", "dev"),
    ],
)
def test_who_says_to_be_an_agent_that_there_is_not_writes_nothing_of_the_plan_and_reads_which_was_meant(
    team: Team, monkeypatch: pytest.MonkeyPatch, announced: str, agent: str, meant: str
) -> None:
    if announced:
        monkeypatch.setenv("YOLO_FS_AGENT", announced)
    for command in (f"echo {{}} > {PHASE}/critique.jsonl", f"rm {PHASE}/01-01.plan.jsonl"):
        told = verdict(team, agent, command)
        assert told.startswith("denied No agent of the company is named"), told
        assert (meant if meant.startswith("Known") else f"Did you mean {meant}?") in told, told
    for command in (f"cat {PHASE}/01-01.plan.jsonl", "echo > src/other.ts", "git status"):
        assert verdict(team, agent, command) == "passes", "that is not ours to refuse"


@pytest.mark.parametrize("agent", ["general-purpose", "Explore", "code-reviewer", "dev-helper"])
def test_an_agent_of_the_hosts_own_is_asked_for_no_rights(team: Team, agent: str) -> None:
    assert verdict(team, agent, f"echo {{}} > {PHASE}/critique.jsonl") == "passes"


@pytest.mark.proves("002:294")
@pytest.mark.parametrize(
    ("agent", "recipient", "is_denied"),
    [
        ("yolo-fe-dev", "yolo-dev", True),
        ("ux-senior", "fe-senior", True),
        ("dev", "fe-lead", True),
        ("yolo-fe-lead", "yolo-lead", False),
        ("fe-dev", "fe-senior", False),
        ("dev", "somebody", False),
        ("general-purpose", "dev", False),
    ],
)
def test_a_message_across_departments_is_for_leads(
    team: Team, agent: str, recipient: str, is_denied: bool
) -> None:
    told = {
        "hook_event_name": "PreToolUse",
        "agent_type": agent,
        "tool_name": "SendMessage",
        "cwd": str(team.root),
        "tool_input": {"recipient": recipient, "content": "which port?"},
    }
    answer, _, code = hook_fast.answer(json.dumps(told).encode())
    assert code == 0
    said = answer.get("hookSpecificOutput", {}).get("permissionDecisionReason", "")
    assert ("department Leads only" in said or "Backend and UI/UX" in said) is is_denied, said


@pytest.mark.parametrize("agent", ["", "yolo-dev"])
@pytest.mark.parametrize(
    ("cwd", "given"),
    [
        ("", {"cmd": "touch .handoff-ux-complete", "workdir": f"{{root}}/{PHASE}"}),
        ("", {"cmd": "touch .handoff-ux-complete", "workdir": PHASE}),
        ("", {"command": ["touch", ".handoff-ux-complete"], "workdir": f"./src/../{PHASE}"}),
        ("", {"cmd": "touch phases/01-auth/.handoff-ux-complete", "workdir": ".yolo-planning"}),
        ("/..", {"cmd": f"touch {{name}}/{PHASE}/.handoff-ux-complete"}),
        ("/..", {"cmd": f"cd {{name}} && touch {PHASE}/.handoff-ux-complete"}),
        ("/..", {"cmd": f"touch '{{root}}/{PHASE}/.handoff-ux-complete'"}),
        ("/..", {"cmd": f"touch {PHASE}/.handoff-ux-complete", "workdir": "{name}"}),
        ("/gone", {"cmd": f"touch ../{PHASE}/.handoff-ux-complete"}),
        ("/gone/deeper", {"cmd": f"touch {{root}}/{PHASE}/.handoff-ux-complete"}),
    ],
)
def test_no_place_where_an_agent_stands_leads_around_a_rule(
    team: Team, agent: str, cwd: str, given: dict[str, Any]
) -> None:
    text = json.dumps(given).replace("{root}", str(team.root)).replace("{name}", team.root.name)
    told = {
        "hook_event_name": "PreToolUse",
        "agent_type": agent or None,
        "tool_name": "exec_command",
    }
    told |= {"cwd": f"{team.root}{cwd}", "tool_input": json.loads(text)}
    answer, note, code = hook_fast.answer(json.dumps(told).encode(), "", "codex")
    decided = answer.get("hookSpecificOutput", {}).get("permissionDecision", "")
    assert (decided, code) == ("deny", 0), (answer, note)


def test_where_no_team_works_no_command_is_looked_into(tmp_path: Path) -> None:
    told = {"hook_event_name": "PreToolUse", "cwd": str(tmp_path), "tool_name": "exec_command"}
    told |= {"tool_input": {"cmd": "touch a/.handoff-ux-complete", "workdir": "b"}}
    assert hook_fast.answer(json.dumps(told).encode()) == ({}, "", 0)


BLOCKER = (EXAMPLES.parent / "messages/dev_blocker/ok/document.json").read_text()
CLAIM = (EXAMPLES.parent / "messages/task_claim/ok/document.json").read_text()


@pytest.mark.proves("002:111", "002:112")
@pytest.mark.parametrize(
    ("agent", "recipient", "content", "is_denied"),
    [
        ("yolo-dev", "yolo-lead", "which port?", True),
        ("yolo-dev", "lead", BLOCKER, True),
        ("yolo-dev", "architect", json.loads(BLOCKER), True),
        ("yolo-dev", "senior", BLOCKER, False),
        ("yolo-dev", "lead", CLAIM, False),
        ("yolo-dev", "architect", CLAIM, True),
        ("yolo-dev", "lead", '{"type":"task_claim","note":"which port?"}', True),
        ("fe-qa", "fe-architect", "look", True),
        ("senior", "architect", "look", True),
        ("fe-dev", "senior", "to my own", False),
        ("dev", "user", "help", True),
        ("dev", "somebody", "look", False),
        ("general-purpose", "dev", "look", False),
    ],
)
def test_a_message_within_a_department_goes_to_whom_one_may_contact(
    team: Team, agent: str, recipient: str, content: object, is_denied: bool
) -> None:
    told = {
        "hook_event_name": "PreToolUse",
        "agent_type": agent,
        "tool_name": "SendMessage",
        "cwd": str(team.root),
        "tool_input": {"recipient": recipient, "content": content},
    }
    answer, _, code = hook_fast.answer(json.dumps(told).encode())
    said = answer.get("hookSpecificOutput", {}).get("permissionDecisionReason", "")
    assert (code, bool(said)) == (0, is_denied), said


@pytest.mark.parametrize(
    "spelled",
    [
        CLAIM.replace("task_claim", "TaskClaim"),
        CLAIM.replace('"type"', '"messageType"'),
        f"```json\n{CLAIM}```",
        CLAIM.rstrip().removesuffix("}") + ",}",
    ],
)
def test_a_message_whose_form_is_wrong_is_told_as_it_has_to_be(team: Team, spelled: str) -> None:
    corrected = refusal_of_message_to_lead(team, spelled).partition("\nInstead: send ")[2]
    assert json.loads(corrected) == json.loads(CLAIM)
    assert refusal_of_message_to_lead(team, corrected) == ""


def test_a_message_that_lacks_values_is_told_all_of_them(team: Team) -> None:
    said = refusal_of_message_to_lead(team, '{"type":"TASK_CLAIM","task_id":"T3"}')
    assert "\nInstead: mend the task_claim, then send it:\n- " in said
    assert all(key in said for key in ("plan_id", "files", "claimed_at"))


@pytest.mark.parametrize("text", ["which port?", "{", "[]", BLOCKER, '{"type":["task_claim"]}'])
def test_what_no_other_form_would_allow_is_told_whom_to_ask(team: Team, text: str) -> None:
    assert "\nInstead: ask " in refusal_of_message_to_lead(team, text)


def refusal_of_message_to_lead(team: Team, content: str) -> str:
    """Return why a Dev's message to the Lead is refused; empty where it is not."""
    told = {
        "hook_event_name": "PreToolUse",
        "agent_type": "yolo-dev",
        "tool_name": "SendMessage",
        "cwd": str(team.root),
        "tool_input": {"recipient": "lead", "content": content},
    }
    answer, _, code = hook_fast.answer(json.dumps(told).encode())
    assert code == 0
    return str(answer.get("hookSpecificOutput", {}).get("permissionDecisionReason", ""))
