"""The plays: what an agent does inside a real host, and what is claimed to come of it."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tests.hosts.model import Say, Shell, Tool, Write
from tests.hosts.player import QUESTION, Apart, Asking, Conductor, Player
from tests.hosts.stage import PATIENCE_S, PHASE, Stage, agents
from tests.support.terminal import Terminal
from yolo_fs.definitions.skills import SKILLS
from yolo_fs.protocol.hooks import HOST_BY_NAME
from yolo_fs.protocol.roster import AGENTS
from yolo_fs.protocol.workflow import STEPS

CRITIQUE = {
    "id": "C1", "cat": "gap", "sev": "major", "q": "No rate limit?", "ctx": "login",
    "sug": "Add one", "st": "open",
}  # fmt: skip
GOOD = json.dumps(CRITIQUE) + "\n"
BAD = '{"id":"C1"}\n'
BOTH = ("claude", "codex")


class Claim(NamedTuple):
    """One thing that is said to be so inside a host."""

    text: str
    holds: bool
    seen: object = ""
    """What was there instead, where it does not hold."""


class Play(NamedTuple):
    """A story with its claims, for some of the hosts."""

    name: str
    hosts: tuple[str, ...]
    run: Callable[[Stage], Iterator[Claim]]
    has_plan: bool = True
    """Whether a phase is under way when it begins."""


PLAYS: dict[str, Play] = {}


def play(
    *hosts: str, has_plan: bool = True
) -> Callable[[Callable[[Stage], Iterator[Claim]]], Callable[[Stage], Iterator[Claim]]]:
    """Put a function into the table of plays."""

    def put(function: Callable[[Stage], Iterator[Claim]]) -> Callable[[Stage], Iterator[Claim]]:
        name = function.__name__.replace("_", " ")
        PLAYS[name] = Play(name, hosts, function, has_plan)
        return function

    return put


def says(text: str, *words: str) -> Callable[[str], Claim]:
    """Return what makes a claim that a text has all these words."""
    return lambda seen: Claim(text, all(word in seen for word in words), seen[-600:])


def mend(name: str) -> Shell:
    return Shell(f"cat > {PHASE}/{name} <<'EOF'\n{GOOD}EOF")


def is_there(stage: Stage, path: str) -> bool:
    return (stage.root / path).exists()


BRIEF = "next: critic does critique"
FORBIDDEN = ".dept-status-uiux.json"
"""Of a department that does not work, so nobody but a forbidden write makes it."""


@play(*BOTH)
def a_session(stage: Stage) -> Iterator[Claim]:
    """Brief, refusals, faults, the stop, and the commit of what was mended."""
    status = f"{PHASE}/{FORBIDDEN}"
    prompt = stage.script(
        "session",
        Shell(f"echo '{{}}' > {status}"),
        Write(status, "{}\n"),
        Shell("rm -rf .yolo-planning"),
        Shell(f"python3 - <<'EOF'\nopen('{status}', 'w').write('x')\nEOF"),
        Shell("echo plain > plain.txt && cat plain.txt"),
        Write(f"{PHASE}/critique.jsonl", BAD),
        Say("That is all."),
        mend("critique.jsonl"),
        Say("Now it is done."),
    )
    done = stage.run(prompt)
    asked = stage.asked
    yield says("the brief is in the first request", BRIEF)(asked("session").text)
    yield Claim("a forbidden write is not executed", not is_there(stage, status))
    told = says(
        "its reason and what to do instead reach the model", "under its lock alone", "Instead:"
    )
    yield told(asked("session", 1).latest)
    told = says("the tool that writes files is refused as the shell is", "under its lock alone")
    yield told(asked("session", 2).latest)
    yield says("the planning tree is not removed", "name the files")(asked("session", 3).latest)
    told = says("code in a here-document is seen", "under its lock alone")
    yield told(asked("session", 4).latest)
    ordinary = asked("session", 5).latest
    yield Claim(
        "what is none of ours runs as ever",
        "plain" in ordinary and "Instead" not in ordinary,
        ordinary,
    )
    yield says("the faults of an artifact reach the model", "missing_key: 'sev'")(
        asked("session", 6).latest
    )
    yield says("who stops with a fault is sent back", "Before you stop")(asked("session", 7).latest)
    yield Claim("the mended artifact is committed", stage.is_committed("critique.jsonl"))
    yield Claim(
        "the second stop lets go", done.code == 0 and len(stage.model.of("session")) == 9, done
    )
    lives = stage.ours("agent", "list")
    yield Claim("the session was seen as an agent", bool(lives.strip()), lives)
    yield Claim(
        "nothing else was asked of the model's address",
        not stage.model.strangers,
        stage.model.strangers,
    )


@play(*BOTH)
def a_session_whose_work_is_good(stage: Stage) -> Iterator[Claim]:
    """Nobody is held up who did nothing wrong."""
    prompt = stage.script("good", Write(f"{PHASE}/critique.jsonl", GOOD), Say("Done."))
    done = stage.run(prompt)
    yield Claim(
        "a valid artifact is committed while the host waits", stage.is_committed("critique.jsonl")
    )
    yield Claim(
        "nobody is sent back for it", done.code == 0 and len(stage.model.of("good")) == 2, done
    )
    subject = stage.team.git("log", "-1", "--format=%s")
    yield Claim(
        "under its prescribed subject", subject == "docs(01): critique and gap analysis", subject
    )


@play(*BOTH)
def a_command_that_fails_after_it_wrote(stage: Stage) -> Iterator[Claim]:
    command = Shell(f"cat > {PHASE}/critique.jsonl <<'EOF'\n{BAD}EOF\nexit 3")
    stage.run(stage.script("failing", command, Say(), Say()))
    told = says("its faults are told at once", "missing_key: 'sev'")
    yield told(stage.asked("failing", 1).latest)


@play(*BOTH)
def commits_of_an_agent(stage: Stage) -> Iterator[Claim]:
    """Git's hooks, and what goes around them."""
    stage.ours("hooks", "install")
    stage.team.file("src/a.ts", "export {}\n")
    stage.run(
        stage.script(
            "commits",
            Shell("git add src && git commit --no-verify -m 'x'"),
            Shell("git add src && git commit -m 'feature(01-01): T1 load the keys'"),
            Shell(
                "git add src && git commit -q -m 'feat(01-01): T1 load the keys' && git log -1 --format=%s"
            ),
            Shell(
                "date > notes.txt && git add notes.txt && git commit -q -m 'whatever'; git log -1 --format=%s"
            ),
            Say(),
        )
    )
    told = says("no agent skips the hooks of git", "skips the hooks", "Instead:")
    yield told(stage.asked("commits", 1).latest)
    told = says(
        "git refuses a wrong subject of a task, and says what is expected", "the commit is refused"
    )
    yield told(stage.asked("commits", 2).latest)
    yield says("a sound commit goes through", "T1 load the keys")(stage.asked("commits", 3).latest)
    told = says(
        "a commit that is none of the team's gets a tip at most", "Closest valid", "whatever"
    )
    yield told(stage.asked("commits", 4).latest)


@play(*BOTH)
def subagents_with_roles(stage: Stage) -> Iterator[Claim]:
    """A Critic, which may write nothing, and a Lead, which answers for what it wrote."""
    stage.script("critic", Write(f"{PHASE}/critique.jsonl", GOOD), Say("I return my findings."))
    stage.script(
        "lead",
        Write(f"{PHASE}/critique.jsonl", BAD),
        Say("It is written."),
        mend("critique.jsonl"),
        Say("Now it is valid."),
    )
    if stage.host == "codex":
        stage.ours("setup", "codex", "--roles")
    steps = [step for name in ("critic", "lead") for step in _spawned(stage.host, name)]
    roles = agents("yolo-critic", "yolo-lead") if stage.host == "claude" else ()
    stage.run(stage.script("parent", *steps, Say(), Say()), *roles)
    asked = stage.asked
    yield says("a subagent is told where its own work stands", "# yolo-fs resume")(
        asked("lead").text
    )
    yield says("a subagent is told what its role receives", "lead receives:")(asked("lead").text)
    if stage.host == "codex":
        yield says("it is told who it is", "You report to yolo-lead")(asked("critic").text)
    told = says(
        "a role may not write what its tools do not write", "yolo-critic has", "no Write tool"
    )
    yield told(asked("critic", 1).latest)
    yield says("the refusal says whom to ask", "Instead: ask lead")(asked("critic", 1).latest)
    yield says("a subagent's own faults reach it", "missing_key: 'sev'")(asked("lead", 1).latest)
    told = says("a subagent that stops with a fault of its own is sent back", "Before you stop")
    yield told(asked("lead", 2).latest)
    turns = [each.turn for each in stage.model.of("lead")]
    yield Claim("once", turns == [0, 1, 2, 3], turns)
    yield Claim("its artifact is committed", stage.is_committed("critique.jsonl"))
    last = stage.model.of("parent")[-1].latest
    yield Claim("who spawned it is not sent back for it", "Before you stop" not in last, last)
    yield says("both stand among the agents", "yolo-critic", "yolo-lead")(
        stage.ours("agent", "list")
    )


@play("codex")
def commands_as_skills(stage: Stage) -> Iterator[Claim]:
    """The commands of the company, as skills of the project."""
    stage.ours("setup", "codex", "--roles")
    stage.run(stage.script("plain", Say()))
    offered = stage.asked("plain").text
    yield says("a command that reports is offered to the model", "yolo-status", "Show where")(
        offered
    )
    is_barred = "Take an intent from analysis to sign-off" not in offered
    yield Claim("one that starts agents is not", is_barred, offered[-3000:])
    stage.run(f"$yolo-go add a login. {stage.script('asked-for', Say())}")
    told = says("a person starts it by its name", "# The company at work", "--host codex")
    yield told(stage.asked("asked-for").text)


def _spawned(host: str, name: str) -> tuple[Tool, ...]:
    """Return the steps by which a session spawns `yolo-NAME`, which plays NAME, and waits for it."""
    prompt, role = f"PLAY:{name}", f"yolo-{name}"
    if host == "claude":
        told = {"description": "A part", "prompt": prompt, "subagent_type": role}
        return (Tool("Agent", {**told, "run_in_background": False}),)
    space = "multi_agent_v1"
    return (
        Tool("spawn_agent", {"message": prompt, "agent_type": role}, space),
        Tool("wait_agent", {"targets": ["AGENT"], "timeout_ms": 30_000}, space),
    )


@play(*BOTH)
def a_compaction(stage: Stage) -> Iterator[Claim]:
    """The context is emptied in the middle of the work."""
    options = ("--autocompact", "100000")
    if stage.host == "codex":
        options = ("-c", "model_auto_compact_token_limit=100000")
    prompt = stage.script(
        "compacted", Shell("echo before", is_long=True), Shell("echo after"), Say("Done.")
    )
    stage.team.artifact("research.jsonl", BAD)
    done = stage.run(prompt, *options)
    after = [each for each in stage.model.of("compacted") if each.turn == 1]
    compactions = stage.model.of("compacted:compaction")
    yield Claim(
        "the host compacted",
        bool(compactions),
        [(each.play, each.turn) for each in stage.model.requests],
    )
    count = after[0].text.count("# yolo-fs resume") if after else 0
    yield Claim(
        "the brief is in the context after it, once",
        count == 1,
        (count, after and after[0].text[-3000:]),
    )
    yield Claim(
        "nobody is sent back in the middle of it",
        done.code == 0 and "Before you stop" not in done.out,
        done,
    )
    names = stage.ours("agent", "list", "--json")
    yield Claim("the host's own fork is no agent", len(json.loads(names)["data"]) == 1, names)


@play(*BOTH)
def a_session_that_is_resumed_and_forked(stage: Stage) -> Iterator[Claim]:
    stage.run(stage.script("first", Say("Good night.")))
    again, fork = ("--continue",), ("--continue", "--fork-session")
    if stage.host == "codex":
        rollout = next((stage.home / ".codex/sessions").rglob("*.jsonl"))
        again, fork = ("resume", "--last"), ("fork", rollout.stem[-36:])
    stage.team.artifact("critique.jsonl", GOOD)
    yield Claim("meanwhile the team goes on", stage.is_committed("critique.jsonl"))
    stage.run(stage.script("second", Say("Good morning.")), *again)
    resumed = stage.asked("second").text
    yield says("a resumed session goes on where it was", "Good night.")(resumed)
    yield says(
        "and is told where the team is now", f"main at {stage.team.head()[:12]}", "next: scout"
    )(resumed)
    stage.run(stage.script("third", Say("Good evening.")), *fork)
    forked = stage.asked("third").text
    yield says(
        "a forked one too", "Good night.", f"main at {stage.team.head()[:12]}", "next: scout"
    )(forked)


@play(*BOTH)
def a_start_below_the_root(stage: Stage) -> Iterator[Claim]:
    below = "src/deep"
    (stage.root / below).mkdir(parents=True)
    if stage.host == "claude":
        stage.run(stage.script("silent", Say()), below=below)
        silent = stage.asked("silent").text
        yield Claim("the host does not read our settings there", BRIEF not in silent)
        told = stage.ours("doctor", "-C", below, ok=False)
        yield says("and doctor says so", "setup claude --local")(" ".join(told.split()))
        stage.ours("setup", "claude", "--local")
    status = f"{PHASE}/{FORBIDDEN}"
    stage.run(stage.script("below", Shell(f"echo x > ../../{status}"), Say(), Say()), below=below)
    yield says("the brief is in the first request", BRIEF)(stage.asked("below").text)
    yield Claim("a forbidden write is not executed", not is_there(stage, status))
    if stage.host == "claude":
        stage.run(stage.script("top", Say()))
        count = stage.asked("top").text.count("# yolo-fs resume")
        yield Claim("with both settings the brief still comes once", count == 1, count)


@play(*BOTH)
def a_linked_work_tree(stage: Stage) -> Iterator[Claim]:
    stage.team.user_commits("chore: hooks", ".claude" if stage.host == "claude" else ".codex")
    linked = stage.place / "linked"
    stage.team.git("worktree", "add", "-q", "-b", "side", str(linked))
    status = f"{PHASE}/{FORBIDDEN}"
    stage.run(
        stage.script("linked", Shell(f"echo x > {status}"), Shell(f"echo '{BAD.strip()}' > {PHASE}/critique.jsonl"),
                     Say(), Shell(f"echo '{GOOD.strip()}' > {PHASE}/critique.jsonl"), Say()),
        below=str(linked),
    )  # fmt: skip
    yield says("the brief is that of the linked work tree", "branch: side at")(
        stage.asked("linked").text
    )
    yield Claim("a forbidden write is not executed", not (linked / status).exists())
    yield says("faults are told", "missing_key: 'sev'")(stage.asked("linked", 2).latest)
    yield says("who stops with a fault there is sent back", "Before you stop")(
        stage.asked("linked", 3).latest
    )
    yield Claim("the main work tree is as it was", not is_there(stage, f"{PHASE}/critique.jsonl"))


@play("codex")
def a_sandbox_without_git(stage: Stage) -> Iterator[Claim]:
    """The host shows `.git` read-only to the commands of its agent; our daemon is outside."""
    done = stage.run(
        stage.script(
            "sandboxed",
            Write(f"{PHASE}/critique.jsonl", GOOD),
            Shell("touch .git/x; yolo-fs resume; yolo-fs status"),
            Shell("yolo-fs validate; echo code $?"),
            Say(),
        ),
        "-s", "workspace-write",
    )  # fmt: skip
    told = stage.asked("sandboxed", 2).latest
    yield says("the sandbox keeps .git read-only", "Read-only file system")(told)
    yield Claim(
        "what the daemon does is told as it is",
        "storage_failed" not in told and "held" not in told,
        told,
    )
    yield says("files are checked there", "code 0")(stage.asked("sandboxed", 3).latest)
    yield Claim("the daemon outside commits", stage.is_committed("critique.jsonl"), done)


@play("codex")
def hooks_that_nobody_approved(stage: Stage) -> Iterator[Claim]:
    status = f"{PHASE}/{FORBIDDEN}"
    stage.run(stage.script("untrusted", Shell(f"echo x > {status}"), Say()), trusted=False)
    yield Claim(
        "the host skips them silently",
        is_there(stage, status) and BRIEF not in stage.asked("untrusted").text,
    )
    told = " ".join(stage.ours("doctor", ok=False).split())
    yield says("doctor says that they are not approved", "not approved as it is now")(told)


FILES = 2_000


@play(*BOTH)
def a_net_under_what_destroys(stage: Stage) -> Iterator[Claim]:
    """An agent resets and cleans a checkout in which others have not committed their work."""
    for number in range(FILES // 2):
        stage.team.file(f"lib/{number % 40}/tracked{number}.txt", f"old {number}\n")
    stage.team.user_commits("feat: a library", "lib")
    kept = {}
    for number in range(FILES // 2):
        for name in (f"tracked{number}.txt", f"untracked{number}.txt"):
            file = stage.team.file(f"lib/{number % 40}/{name}", f"work of others {number}\n\0" * 9)
            if number % 10 == 0:
                file.chmod(0o755)
            elif number % 10 == 1:
                file.unlink()
                file.symlink_to(f"../elsewhere/{number}")
            kept[file] = _look(file)
    secret = stage.team.file(
        ".env", "AWS_SECRET_ACCESS_KEY=" + "wJalrXUtnFEMI/K7MDENG" + "/bPxRfiCYzzzzzzzKEY\n"
    )
    ended = stage.run(
        stage.script(
            "destroying",
            Shell("git reset -q --hard && git clean -qfd && ls lib/3 | wc -l"),
            Say(),
            Say(),
        )
    )
    told = stage.asked("destroying", 1).latest
    gone = sum(_look(file) != look for file, look in kept.items())
    yield Claim("the command was not stopped", gone == FILES, gone)
    command = re.search(r"'yolo-fs (kept restore \d+)'", told)
    yield Claim("its answer names the command that brings all back", command is not None, told)
    yield Claim(
        "a credential is named, not kept",
        ".env" in told and not secret.exists() and "AWS_SECRET" not in told,
        told,
    )
    if command is None:
        return
    began = time.monotonic()
    stage.ours(*command[1].split())
    restored = time.monotonic() - began
    wrong = [str(file) for file, look in kept.items() if _look(file) != look]
    yield Claim(f"all {FILES:,} files are there again, to the byte", not wrong, wrong[:5])
    links = [file for file, (kind, _) in kept.items() if kind == "link"]
    yield Claim(
        f"among them {FILES // 10:,} links and as many that can be run",
        len(links) == FILES // 10 and all(file.is_symlink() for file in links) and not wrong,
    )
    hook_s = next(seconds for event, seconds in ended.hooks if event == "PreToolUse")
    stage.notes.append(
        f"{stage.host}: {FILES:,} files: {hook_s:.2f} s added before the command, of a session of "
        f"{ended.seconds:.1f} s; restored in {restored:.1f} s"
    )


def _look(file: Path) -> tuple[str, bytes]:
    """Return what is at a path: where a link leads, or whether a file can be run and what it holds."""
    if file.is_symlink():
        return "link", os.fsencode(os.readlink(file))
    if not file.exists():
        return "nothing", b""
    return ("runs" if file.stat().st_mode & 0o100 else "file"), file.read_bytes()


@play("claude")
def a_plugin(stage: Stage) -> Iterator[Claim]:
    """Everything as a plugin, beside nothing of ours in the project."""
    stage.ours("setup", "claude", "--remove")
    folder = str(stage.place / "plugin")
    stage.ours("setup", "claude", "--plugin", folder)
    words = ("--strict", "--profile", "directory", "--json")
    judged = stage.host_command("plugin", "validate", folder, *words)
    report = json.loads(judged.out)
    yield Claim(
        "the host's own validation accepts it",
        judged.code == 0 and report["success"],
        judged.out[:3000],
    )
    provided = report["provides"]
    events = {each["event"] for each in provided["hooks"]}
    yield Claim("it has every hook", events == set(HOST_BY_NAME["claude"].events.values()), events)
    commands = {f"yolo:{skill.name}" for skill in SKILLS} | {"yolo:yolo-fs"}
    parts = ({*provided["skills"]}, [each["name"] for each in provided["mcpServers"]])
    yield Claim("it has the commands and the server", parts == (commands, ["yolo-fs"]), parts)
    agents = {f"yolo:{row.full_name}" for row in AGENTS}
    yield Claim("it has every agent", {*provided["agents"]} == agents, provided["agents"])
    status = f"{PHASE}/{FORBIDDEN}"
    skill = Tool("Skill", {"skill": "yolo:yolo-fs"})
    stage.run(
        stage.script("plugin", Shell(f"echo x > {status}"), skill, Say(), Say()),
        "--plugin-dir",
        folder,
    )
    yield says("its hooks bring the brief", BRIEF)(stage.asked("plugin").text)
    yield says("its hooks refuse", "written under its lock alone")(stage.asked("plugin", 1).latest)
    yield says("its skill teaches the protocol", "Working in a team by files")(
        stage.asked("plugin", 2).text
    )


@play(*BOTH)
def an_act_of_a_run(stage: Stage) -> Iterator[Claim]:
    """`yolo-fs go` starts the host headless, in the role of an agent; what the role has no tool for it says."""
    program = stage.program()
    (stage.place / "bin" / Path(program).name).symlink_to(program)
    if stage.host == "codex":
        stage.write_codex_config()
    mark = stage.script("critic", Say(f"I found this.\n\n```json\n{GOOD}```\n"))
    words = ("--host", stage.host, "--phase", "1", "--max-agents", "1", "--max-tokens", "1")
    told = stage.ours("go", mark, *words, ok=False)
    asked = stage.asked("critic")
    yield says("it is told who it is", "You report to yolo-lead")(asked.text)
    yield says("and what its act is", "You are yolo-critic. Phase 01-auth, step critique.")(
        asked.text
    )
    if stage.host == "claude":
        tools = {*asked.tools}
        is_so = tools >= CRITICS and tools.isdisjoint(("Write", "Edit", "Bash", "SendMessage"))
        yield Claim("its tools are the roster's", is_so, asked.tools)
    yield Claim("its answer is committed as its file", stage.is_committed("critique.jsonl"), told)
    yield says("the bill stands below the run", "tokens")(told)


def _runs_of(stage: Stage) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(stage.ours("company", "runs", "--json"))["data"]
    return runs


def _in_run(stage: Stage, player: type[Player] = Player) -> None:
    """Have a model play each role, and the host's program where a run finds it."""
    stage.model.player = lambda brief, host: player(brief, stage.root, host).steps()
    for host in BOTH:
        program = stage.in_host(host).program()
        (stage.place / "bin" / host).symlink_to(program)
    stage.write_codex_config()


@play(*BOTH, has_plan=False)
def an_intent_to_the_sign_off(stage: Stage) -> Iterator[Claim]:
    """`yolo-fs go` with the real host in each role, headless."""
    _in_run(stage)
    told = stage.ours("go", "add a login", "--host", stage.host, "--team", "pair", ok=False)
    yield says("it is shipped", "shipped")(told)
    subjects = stage.team.git("log", "--format=%s")
    yield says("the sign-off is on the branch", "chore(state): phase 1 complete")(subjects)
    yield says("the Dev committed its source", "feat(01-01): T1", "feat(01-01): T2")(subjects)
    yield Claim("nobody had to be started twice", "try 2" not in told, told)
    yield says("what it made is valid", "verified: no faults")(stage.ours("verify", ok=False))


@play(*BOTH, has_plan=False)
def a_dev_in_a_work_tree_of_its_own(stage: Stage) -> Iterator[Claim]:
    """`yolo-fs go --worktrees`: the host plays the Dev elsewhere, and what it made is merged."""
    _in_run(stage, Apart)
    words = ("--host", stage.host, "--team", "pair", "--worktrees")
    told = stage.ours("go", "add a login", *words, ok=False)
    yield says("it is shipped", "shipped")(told)
    merged = [line for line in told.splitlines() if "task.merged" in line]
    yield Claim("each task was merged once", len(merged) == 2, told)
    devs = [each.play for each in stage.model.requests if "You are yolo-dev." in each.play]
    yield Claim("a Dev was at work", bool(devs), stage.model.requests)
    subjects = stage.team.git("log", "--format=%s")
    yield says("the Dev committed its source", "feat(01-01): T1", "feat(01-01): T2")(subjects)
    yield Claim("nobody had to be started twice", "try 2" not in told, told)
    left = stage.team.git("worktree", "list").splitlines()
    yield Claim("no work tree is left", len(left) == 1, left)
    yield says("what it made is valid", "verified: no faults")(stage.ours("verify", ok=False))


@play(*BOTH, has_plan=False)
def a_question_of_a_dev(stage: Stage) -> Iterator[Claim]:
    """A Dev blocks, its question goes up to the user, and the run goes on with the answer."""
    _in_run(stage, Asking)
    words = ("--host", stage.host, "--team", "solo")
    told = stage.ours("go", "add a login", *words, ok=False)
    yield says("the run ends at a person", "waits for a person", QUESTION)(told)
    subjects = stage.team.git("log", "--format=%s")
    yield Claim("the task that waits is not done", "feat(01-01): T1" not in subjects, subjects)
    items = [
        one
        for one in json.loads(stage.ours("inbox", "--json", ok=False))["data"]
        if one["kind"] == "escalation"
    ]
    yield Claim(
        "it is one item of the inbox, with its options",
        [one["options"] for one in items] == [["Blue", "Red"]],
        items,
    )
    path = next(stage.root.glob(".yolo-planning/phases/*/escalation.jsonl"))
    rungs = [line["tgt"] for line in map(json.loads, path.read_text().splitlines())]
    yield Claim(
        "each of the chain had it in turn", rungs == ["senior", "lead", "architect", "user"], rungs
    )
    again = stage.ours("go", *words, ok=False)
    yield says("without an answer the run ends there again", "waits for a person", QUESTION)(again)
    yield Claim("and starts nobody", "agent.started" not in again, again)
    stage.ours(*shlex.split(items[0]["command"].replace("CHOICE", "2"))[1:])
    done = stage.ours("go", *words, ok=False)
    yield says("with the answer by the command of the inbox it is shipped", "shipped")(done)
    devs = [each.play for each in stage.model.requests if "You are yolo-dev." in each.play]
    yield Claim(
        "the Dev is told the answer",
        any("continues 01-01/T1: Red" in brief for brief in devs),
        devs[-1:],
    )
    subjects = stage.team.git("log", "--format=%s")
    yield says("the task is done", "feat(01-01): T1", "chore(state): phase 1 complete")(subjects)
    yield Claim(
        "nobody had to be started twice", "try 2" not in told + again + done, told + again + done
    )
    yield says("what it made is valid", "verified: no faults")(stage.ours("verify", ok=False))


@play(*BOTH, has_plan=False)
def a_runner_that_is_killed_in_each_step(stage: Stage) -> Iterator[Claim]:
    """The agents go on; the next runner finds what they have done, and nothing is done twice."""
    _in_run(stage)
    stage.team.config({"documenter": "always", "yolo_fs": {"settle_ms": 0}})
    stage.team.user_commits("chore(repo): configure", ".yolo-planning/config.json")
    killed, code, last = list[str](), -signal.SIGKILL, ""
    while code == -signal.SIGKILL:
        words = [
            "yolo-fs",
            "go",
            *(() if killed else ("add a login",)),
            "--json",
            "--host",
            stage.host,
        ]
        runner = subprocess.Popen(
            words, cwd=stage.root, env=stage.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        for last in runner.stdout or ():
            event = json.loads(last)
            if event.get("event") == "agent.started" and event["step"] not in killed:
                killed.append(event["step"])
                runner.kill()
                break
        code = runner.wait()
    steps = [row.key for row in STEPS if row.number.split(".")[0] not in ("11", "12")]
    yield Claim(
        "it was killed in each step that has an agent", {*steps} <= {*killed}, (killed, steps)
    )
    yield Claim("in the end it is shipped", code == 0, last)
    runs = _runs_of(stage)
    acts = [tuple(act["key"]) for run in runs for act in run["acts"]]
    twice = [act for act, count in Counter(acts).items() if count > 1]
    yield Claim("no act was started twice", not twice, (twice, runs))
    subjects = stage.team.git("log", "--format=%s").splitlines()
    again = [subject for subject, count in Counter(subjects).items() if count > 1]
    yield Claim("no commit is there twice", not again, again)
    yield says("what it made is valid", "verified: no faults")(stage.ours("verify", ok=False))
    stage.notes.append(f"{stage.host}: killed {len(killed)} times, {len(acts)} acts")


@play("claude", has_plan=False)
def a_run_that_changes_its_host(stage: Stage) -> Iterator[Claim]:
    """What the Lead has planned in Claude Code, Senior and Dev carry out in Codex."""
    _in_run(stage)
    words = ("--host", "claude", "--team", "solo", "--approve", "plan")
    planned = stage.ours("go", "add a login", *words, ok=False)
    yield says("the first host plans, and a person is asked", "waits for a person")(planned)
    told = stage.ours("go", "--host", "codex", ok=False)
    yield says("the second one ships it", "shipped")(told)
    hosts = [run["host"] for run in _runs_of(stage)]
    yield Claim("each is in the list of runs", hosts == ["claude", "codex"], hosts)
    yield Claim("nobody had to be started twice", "try 2" not in planned + told, told)
    yield says("what they made is valid", "verified: no faults")(stage.ours("verify", ok=False))


@play("claude", has_plan=False)
def a_dev_whom_another_host_plays(stage: Stage) -> Iterator[Claim]:
    """One run: Claude Code plays everybody but the Dev, and Codex the Dev."""
    _in_run(stage)
    words = ("--host", "claude", "--host", "dev=codex", "--team", "pair")
    told = stage.ours("go", "add a login", *words, ok=False)
    yield says("it is shipped", "shipped")(told)
    (run,) = _runs_of(stage)
    hosts = {(act["agent"], act["host"]) for act in run["acts"]}
    in_codex = [agent for agent, host in hosts if host == "codex"]
    yield Claim("the Dev alone was started in Codex", in_codex == ["dev"], hosts)
    others = {agent for agent, host in hosts if host == "claude"}
    are_there = {"analyze", "lead", "senior", "tester", "qa", "qa-code"} <= others
    yield Claim("everybody else was started in Claude Code", are_there, hosts)
    unread = [act["agent"] for act in run["acts"] if not act["tokens"]]
    yield Claim("the stream of each is read as its host prints it", not unread, run["acts"])
    subjects = stage.team.git("log", "--format=%s")
    yield says("the source of the Dev is committed", "feat(01-01): T1", "feat(01-01): T2")(subjects)
    yield says("the sign-off is on the branch", "chore(state): phase 1 complete")(subjects)
    yield Claim("nobody had to be started twice", "try 2" not in told, told)
    yield says("what they made is valid", "verified: no faults")(stage.ours("verify", ok=False))


@play(*BOTH, has_plan=False)
def a_rate_that_is_refused(stage: Stage) -> Iterator[Claim]:
    """The model's first answer is HTTP 429: everybody waits, and nobody fails."""
    _in_run(stage)
    stage.model.limits = 1
    words = ("--host", stage.host, "--team", "solo", "--max-tokens", "1")
    told = stage.ours("go", "add a login", *words, ok=False)
    yield says("the run waits", "host.limited", "wait_s 30")(told)
    yield Claim("the try does not count", "try 2" not in told, told)
    yield says("the act is done", "analyze po")(told)
    yield says("it is on the branch", "analysis")(stage.team.git("log", "--format=%s"))


@play(*BOTH, has_plan=False)
def a_host_that_nobody_has_logged_in(stage: Stage) -> Iterator[Claim]:
    """The run ends, and a person reads why in the host's own words."""
    _in_run(stage)
    for key in ("ANTHROPIC_API_KEY", "PLAY_KEY"):
        stage.env.pop(key)
    told = stage.ours("go", "add a login", "--host", stage.host, "--team", "solo", ok=False)
    word = {"claude": "/login", "codex": "PLAY_KEY"}[stage.host]
    yield says("it says what the host says", "refuses the login", word)(told)
    yield says("and ends", "waits for a person: 1 acts")(told)
    yield says("the inbox has it", "yolo-fs go --phase 1")(stage.ours("inbox", ok=False))


@play(*BOTH, has_plan=False)
def a_key_that_is_refused(stage: Stage) -> Iterator[Claim]:
    """The run ends at a person after one start, although a host may ask again for minutes; with a good key the same
    command goes on.
    """
    _in_run(stage)
    stage.model.is_key_refused = True
    words = ("--host", stage.host, "--team", "solo", "--max-tokens", "1")
    began = time.monotonic()
    told = stage.ours("go", "add a login", *words, ok=False)
    stage.notes.append(
        f"{stage.host}: a refused key is known after {time.monotonic() - began:.0f} s"
    )
    why = {"claude": "401", "codex": "the key was withdrawn"}[stage.host]
    yield says("it says what the host says", "refuses the login", why)(told)
    yield says("and ends", "waits for a person: 1 acts")(told)
    yield Claim("it is no limit that one waits for", "host.limited" not in told, told)
    stage.model.is_key_refused = False
    again = stage.ours("go", *words, ok=False)
    yield says("with a good key the work begins", "✔ analyze po")(again)


@play("claude")
def the_company_in_a_session(stage: Stage) -> Iterator[Claim]:
    """`/yolo:go` of the plugin: the session knows where the team is, and starts an agent in its role."""
    stage.ours("setup", "claude", "--remove")
    folder = str(stage.place / "plugin")
    stage.ours("setup", "claude", "--plugin", folder)
    stage.script("critic", Say(f"```json\n{GOOD}```"))
    told = {
        "description": "The critique",
        "prompt": "PLAY:critic",
        "subagent_type": "yolo:yolo-critic",
    }
    steps = (
        Shell("yolo-fs go 'add login' --phase 1 --dry-run --host claude"),
        Tool("Agent", {**told, "run_in_background": False}),
        Say("The critique is there."),
        Say(),
    )
    done = stage.run(f"/yolo:go add login {stage.script('go', *steps)}", "--plugin-dir", folder)
    yield says("the command is expanded", "The company at work", "The intent: add login")(
        stage.asked("go").text
    )
    yield says("it begins with where the team stands", "next: critic")(stage.asked("go").text)
    yield says("it gets the brief of the act", "End with the whole content", "You are yolo-critic")(
        stage.asked("go", 1).latest
    )
    asked = stage.asked("critic")
    yield says("the agent is told who it is", "You report to yolo-lead")(asked.text)
    is_so = {*asked.tools}.isdisjoint(("Write", "Edit", "Bash"))
    yield Claim("its tools are the roster's", is_so, asked.tools)
    yield says("what it found comes back to the session", "No rate limit?")(
        stage.asked("go", 2).latest
    )
    yield Claim("the session ends", done.code == 0, done)


@play("claude", has_plan=False)
def the_company_in_a_session_to_the_sign_off(stage: Stage) -> Iterator[Claim]:
    """A person types `/yolo:go` in a terminal; the session starts every agent, and asks for no permission."""
    stage.model.player = lambda brief, host: Player(brief, stage.root, host).steps()
    stage.ours("setup", "claude", "--remove")
    folder = str(stage.place / "plugin")
    stage.ours("setup", "claude", "--plugin", folder)
    stage.team.config({"company": {"team": "solo"}, "yolo_fs": {"settle_ms": 0}})
    stage.team.user_commits("chore(repo): configure", ".yolo-planning/config.json")
    path = f"{stage.root}/.yolo-planning/phases/01-login/analysis.json"
    facts = {
        "complexity": "medium",
        "departments": ["backend"],
        "intent": "execute",
        "confidence": 0.9,
    }
    stage.script("analyze", Say(f"```json\n{json.dumps(facts)}\n```"))
    told = {
        "description": "The analysis",
        "prompt": "PLAY:analyze",
        "subagent_type": "yolo:yolo-analyze",
    }
    session = Conductor("add a login")
    prompt = stage.script(
        "go",
        Shell("yolo-fs phase new login"),
        Tool("Agent", {**told, "run_in_background": False}),
        Write(path, f"{json.dumps(facts)}\n"),
        *[session.go_on] * 100,
    )
    stage.accept_first_questions()
    words = [
        "--plugin-dir",
        folder,
        "--permission-mode",
        "acceptEdits",
        f"/yolo:go add login {prompt}",
    ]
    terminal = Terminal([stage.program(), *words], stage.root, stage.env)
    try:
        terminal.until("SHIPPED", PATIENCE_S)
    finally:
        terminal.process.terminate()
        terminal.end()
    subjects = stage.team.git("log", "--format=%s")
    yield says("the sign-off is on the branch", "chore(state): phase 1 complete")(subjects)
    yield says("the Dev committed its source", "feat(01-01): T1", "feat(01-01): T2")(subjects)
    roles = [f"yolo-{name}" for name in ("analyze", "lead", "senior", "dev")]
    yield says("each role was an agent of its own", *roles)(stage.ours("agent", "list"))
    shown = terminal.shown.decode(errors="replace")
    yield Claim("nobody was asked for a permission", "Do you want" not in shown, shown[-3000:])
    yield says("what it made is valid", "verified: no faults")(stage.ours("verify", ok=False))


CRITICS = {"Read", "Glob", "Grep", "WebSearch", "WebFetch"}


@play(*BOTH)
def tools_by_mcp(stage: Stage) -> Iterator[Claim]:
    """The host starts our MCP server, and its agent works by the tools alone."""
    stage.ours("setup", stage.host, "--mcp")
    path = f"{PHASE}/critique.jsonl"
    calls = [("team_status", {}), ("append_record", {"path": path, "record": {"id": "C1"}}),
             ("append_record", {"path": path, "record": CRITIQUE})]  # fmt: skip
    steps = [_by_mcp(stage.host, name, given) for name, given in calls]
    options = ()
    if stage.host == "claude":
        servers = {"mcpServers": {"yolo-fs": {"command": "yolo-fs", "args": ["mcp"]}}}
        options = ("--mcp-config", json.dumps(servers))
    # One host starts its servers beside the session, and tells of them with its next request.
    waits = (Shell("sleep 9"), Shell("true"))
    done = stage.run(stage.script("mcp", *waits, *steps, Say(), Say()), *options)
    stand, bad, good = (stage.asked("mcp", turn).latest for turn in (3, 4, 5))
    yield says("the host calls our tools", BRIEF)(stand)
    yield says("a bad record is refused with its faults", "missing_key")(bad)
    yield says("a good one is written", "line 1 written")(good)
    yield Claim("and committed", stage.is_committed("critique.jsonl"), done)


def _by_mcp(host: str, name: str, given: dict[str, object]) -> Tool:
    if host == "claude":
        return Tool(f"mcp__yolo-fs__{name}", given)
    return Tool(name, given, "mcp__yolo_fs")


@play("claude and codex")
def a_phase_of_two_hosts_at_once(stage: Stage) -> Iterator[Claim]:
    """Agents of both hosts work in one checkout: each is told of its own, and all of it is committed."""
    other = stage.in_host("codex")
    other.ours("setup", "codex")
    critique, research = f"{PHASE}/critique.jsonl", f"{PHASE}/research.jsonl"
    found = (stage.team.examples / "research/ok/findings.jsonl").read_text()
    first = stage.script(
        "lead",
        Write(critique, BAD),
        Shell("sleep 4"),
        mend("critique.jsonl"),
        Say("The critique is done."),
        Say(),
    )
    second = other.script(
        "scout", Write(research, found), Shell("sleep 4"), Say("The research is done."), Say()
    )
    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(lambda each: each[0].run(each[1]), ((stage, first), (other, second))))
    yield Claim("both sessions end", [each.code for each in ends] == [0, 0], ends)
    yield says("who wrote a fault is told of it", "missing_key: 'sev'")(
        stage.asked("lead", 1).latest
    )
    told = "".join(each.latest for each in stage.model.of("scout")[1:])
    yield Claim(
        "the other is told nothing of it",
        "missing_key" not in told and "Before you stop" not in told,
        told,
    )
    yield Claim(
        "the work of both is committed",
        stage.is_committed("critique.jsonl") and stage.is_committed("research.jsonl"),
    )
    faults = stage.ours("verify", ok=False)
    yield says("the history that they made is valid", "verified: no faults")(faults)
    third = stage.script("after", Say())
    stage.run(third)
    yield Claim(
        "whoever comes next is told of both",
        "next: critic" not in stage.asked("after").text
        and "next: scout" not in stage.asked("after").text,
        stage.asked("after").text[-1500:],
    )
