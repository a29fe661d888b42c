"""What Claude Code 2.1.330 and Codex 0.169.0 really sent is replayed.

`fixtures/hosts` has each payload, with our answer and why.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support.teams import Team
from yolo_fs.cli import hook_fast, hook_question
from yolo_fs.protocol.hooks import HOST_BY_NAME

FIXTURES = Path(__file__).parents[2] / "fixtures"
RECORDED = sorted((FIXTURES / "hosts").glob("*.json"))
SCHEMAS = FIXTURES / "hooks/schemas"
WHO = ("session_id", "agent_id", "agent_type")
PHASE = ".yolo-planning/phases/01-auth"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """Return a repository with a plan in a commit, and a critique on disk that is invalid."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CONFIG_HOME", str(home / "no config"))
        team = Team(home / "work")
        team.plan_one()
        team.artifact("critique.jsonl", '{"id":"C1"}\n')
        yield team


def payload(name: str) -> dict[str, Any]:
    return dict(json.loads((FIXTURES / f"hosts/{name}.json").read_text())["payload"])


def ask(team: Team, told: dict[str, Any], host: str) -> tuple[dict[str, Any], str, int]:
    data = json.dumps(told).replace("/repo", str(team.root)).encode()
    said, complaint, code = hook_fast.answer(data, "", host)
    return dict(said), complaint, code


def kind_and_text(said: dict[str, Any], complaint: str, code: int) -> tuple[str, str]:
    own = said.get("hookSpecificOutput", {})
    if code:
        return "exit", complaint
    if "permissionDecision" in own:
        return own["permissionDecision"], own["permissionDecisionReason"]
    if "decision" in said:
        return said["decision"], said["reason"]
    if "additionalContext" in own:
        return "context", own["additionalContext"]
    assert said == {}
    return "nothing", ""


@pytest.mark.proves("hosts:2", "hosts:3")
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_a_host_really_sent_gets_its_answer(team: Team, path: Path) -> None:
    case = json.loads(path.read_text())
    host, event = path.stem.split("__")[:2]
    sent = case["payload"]
    if "session_id" in sent:  # its own: a session goes on where the last payload of it left off
        sent |= {"session_id": path.stem}
    if event.endswith("stop") and case["expected"]["kind"] == "block":
        who = {key: sent[key] for key in WHO if key in sent}
        ask(team, payload("claude__post-tool-use__Write") | who, host)  # whoever wrote it is asked
    answer = ask(team, sent, host)
    kind, text = kind_and_text(*answer)
    assert kind == case["expected"]["kind"], (case["why"], answer)
    assert all(part in text for part in case["expected"].get("contains", [])), (case["why"], text)
    if event in HOST_BY_NAME[host].events:
        jsonschema.validate(answer[0], json.loads((SCHEMAS / host / f"{event}.json").read_text()))


@pytest.mark.parametrize("host", ["claude", "codex"])
def test_every_event_that_is_installed_was_recorded(host: str) -> None:
    recorded = {path.stem.split("__")[1] for path in RECORDED if path.stem.startswith(host)}
    assert set(HOST_BY_NAME[host].events) <= recorded


PATCHES = ("*** Begin Patch\r\n*** Add File: {}\r\n+x\r\n*** End Patch",
           "  *** Begin Patch\n  *** Update File: {}\n@@\n-a\n+b\n*** End Patch",
           "*** Begin Patch\n*** Update File: src/a.ts\n*** Move to: {}\n@@\n-a\n+b\n*** End Patch",
           "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: {}\n*** End Patch\nEOF")  # fmt: skip


@pytest.mark.parametrize("patch", PATCHES)
def test_a_patch_is_read_as_loosely_as_the_host_reads_it(team: Team, patch: str) -> None:
    command = patch.format(f"{PHASE}/.dept-status-backend.json")
    told = payload("codex__pre-tool-use__apply_patch") | {"tool_input": {"command": command}}
    kind, reason = kind_and_text(*ask(team, told, "codex"))
    assert (kind, "dept-status-backend.json is" in reason) == ("deny", True)


def test_a_fork_of_the_hosts_own_is_no_agent(team: Team) -> None:
    beats = team.root / ".git/yolo-fs/agents.jsonl"
    told = payload("claude__subagent-stop__of-compaction") | {"agent_id": "of-compaction"}
    assert ask(team, told, "claude") == ({}, "", 0)
    assert "of-compaction" not in (beats.read_text() if beats.exists() else "")


def test_a_compaction_brings_the_brief_once(team: Team) -> None:
    session = {"session_id": "compacted"}
    prompt = payload("codex__user-prompt-submit") | session
    ask(team, payload("codex__post-compact__auto") | session, "codex")
    begun = ask(team, payload("codex__session-start__compact") | session, "codex")[0]
    assert "01-auth" in begun["hookSpecificOutput"]["additionalContext"]
    assert ask(team, prompt, "codex")[0] == {}
    ask(team, payload("codex__post-compact__auto") | session, "codex")
    assert "01-auth" in json.dumps(ask(team, prompt, "codex")[0])  # a host that starts no session


def test_a_reason_is_ended_by_the_host_alone(team: Team) -> None:
    told = payload("codex__pre-tool-use__apply_patch")
    reasons = [
        ask(team, told, host)[0]["hookSpecificOutput"]["permissionDecisionReason"]
        for host in ("codex", "claude")
    ]
    assert f"{reasons[0]}." == reasons[1]  # codex goes on with ". Command: …"


WRITES_A_STATUS = {
    "in the folder": f"cd {PHASE} && python3 - <<'EOF'\n"
    "open('.dept-status-backend.json', 'w').write('{}')\nEOF",
    "put together": f"python3 - <<'EOF'\np = '{PHASE}/'\n"
    "open(p + '.dept-status-backend.json', 'w')\nEOF",
    "by a path": "python3 <<EOF\nfrom pathlib import Path\n"
    "Path('.yolo-planning', 'phases', '01-auth', '.dept-status-backend.json').write_text('')\nEOF",
    "by node": f"node - <<'E'\nrequire('fs').writeFileSync('{PHASE}/.handoff-ux-complete', '')\nE",
    "the whole tree": "rm -rf .yolo-planning",
}


@pytest.mark.parametrize("command", WRITES_A_STATUS.values(), ids=WRITES_A_STATUS.keys())
def test_what_code_in_a_command_writes_is_seen(team: Team, command: str) -> None:
    told = payload("claude__pre-tool-use__Bash") | {"tool_input": {"command": command}}
    assert kind_and_text(*ask(team, told, "claude"))[0] == "deny"


UNCHECKED = (
    "git commit --no-verify -m x",
    "git commit -nm x",
    "git commit -an -m x",
    "git push --no-verify origin main",
    "git -c core.hooksPath=/dev/null commit -m x",
    "cd src && git merge --no-verify topic",
    "sudo git commit -n",
    "git commit --no-verif -m x",
    "git config core.hooksPath /dev/null",
    "git config --local set Core.HooksPath .none",
)
CHECKED = (
    "git commit -m '--no-verify'",
    "git commit -mnote",
    "git push -n",
    "git log -n 3",
    "git commit -m x -- -n",
    "git commit -am 'no news'",
    "git -c user.name=no commit -m x",
    "echo git commit --no-verify",
    "git config core.hooksPath",
    "git config --get core.hookspath",
)


def test_an_agent_skips_none_of_our_hooks(team: Team) -> None:
    def judged(command: str) -> str:
        told = payload("claude__pre-tool-use__Bash") | {"tool_input": {"command": command}}
        return kind_and_text(*ask(team, told, "claude"))[0]

    assert {judged(command) for command in UNCHECKED} == {"nothing"}  # there are none of ours yet
    hooks = team.root / ".git/hooks"
    assert hook_install(team) == 0
    try:
        assert {command: judged(command) for command in UNCHECKED} == dict.fromkeys(
            UNCHECKED, "deny"
        )
        assert {command: judged(command) for command in CHECKED} == dict.fromkeys(
            CHECKED, "nothing"
        )
    finally:
        for name in hooks.iterdir():
            name.unlink()


def hook_install(team: Team) -> int:
    from yolo_fs.cli.main import run

    return run(["hooks", "install", "-q", "-C", str(team.root)])


def test_a_refusal_reaches_the_model_as_it_was_written(
    team: Team, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = json.dumps(payload("claude__task-completed")).replace("/repo", str(team.root)).encode()
    monkeypatch.setattr(hook_question, "read_input", lambda: told)
    assert hook_fast.main(["task-completed"]) == 2
    assert "T1 …".encode() in capfdbinary.readouterr().err
