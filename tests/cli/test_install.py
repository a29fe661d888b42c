"""`init` plants a valid tree, twice the same, never over somebody's file, and says what stands in the way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.settings import config_from
from tests.support.terminal import Terminal
from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.table import IGNORED_STATES, RUNTIME
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit
from yolo_fs.git.obstacles import PathRules
from yolo_fs.git.repository import Repository
from yolo_fs.hooks.githooks import NAMES
from yolo_fs.install.init import (
    AddLines,
    Create,
    Keep,
    carry_out,
    example_paths,
    plan,
    template,
)
from yolo_fs.protocol.departments import Dept
from yolo_fs.schemas.check import check
from yolo_fs.schemas.config import Config
from yolo_fs.schemas.plain_values import shape_of


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    work_tree = tmp_path / "work tree"
    subprocess.run(["git", "init", "-q", str(work_tree)], check=True)
    return work_tree.resolve()


def init(
    root: Path, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, dict[str, Any]]:
    code = run(["init", "-C", str(root), "--json", *options])
    return code, json.loads(capsys.readouterr().out)


def tree(root: Path) -> dict[str, bytes]:
    planning = root / ".yolo-planning"
    return {
        str(path.relative_to(planning)): path.read_bytes()
        for path in planning.rglob("*")
        if path.is_file()
    }


def reasons(answer: dict[str, Any]) -> list[str]:
    return [finding["reason"] for finding in answer["findings"]]


def is_ignored(root: Path, path: str) -> bool:
    return (
        subprocess.run(
            ["git", "-C", str(root), "check-ignore", "-q", "--no-index", path], check=False
        ).returncode
        == 0
    )


# --- what is planted -------------------------------------------------------------------------------------------------


def test_every_file_of_the_template_is_planted(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = init(root, capsys)
    assert (code, answer["ok"], answer["data"]["state"]) == (Exit.DONE, True, "initialised")
    assert tree(root).keys() == {*template(), ".gitignore", ".gitattributes"}
    assert {deed["did"] for deed in answer["data"]["deeds"]} == {"created"}


def test_a_second_init_changes_nothing_and_says_so(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    init(root, capsys)
    before = tree(root)
    code, answer = init(root, capsys)
    assert (code, answer["data"]["state"], tree(root)) == (Exit.DONE, "already_initialised", before)


def test_a_dry_run_names_every_deed_and_does_none(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = init(root, capsys, "--dry-run")
    assert (code, answer["data"]["state"]) == (Exit.DONE, "would_initialise")
    assert not (root / ".yolo-planning").exists()
    assert {deed["path"] for deed in answer["data"]["deeds"]} >= {
        ".yolo-planning/config.json",
        ".yolo-planning/.gitignore",
    }


def test_a_file_that_is_there_is_never_overwritten(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / ".yolo-planning").mkdir()
    (root / ".yolo-planning" / "PROJECT.md").write_text("mine\n")
    (root / ".yolo-planning" / "REQUIREMENTS.md").symlink_to("nowhere")
    init(root, capsys)
    assert (root / ".yolo-planning" / "PROJECT.md").read_text() == "mine\n"
    assert os.readlink(root / ".yolo-planning" / "REQUIREMENTS.md") == "nowhere"


def test_a_file_that_appears_after_the_plan_is_kept(root: Path) -> None:
    deeds = plan(str(root))
    (root / ".yolo-planning").mkdir()
    (root / ".yolo-planning" / "PROJECT.md").write_text("faster\n")
    done = carry_out(str(root), deeds)
    assert Keep(".yolo-planning/PROJECT.md") in done
    assert (root / ".yolo-planning" / "PROJECT.md").read_text() == "faster\n"


def test_a_tree_that_has_phases_gets_no_placeholder(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / ".yolo-planning" / "phases" / "01-auth").mkdir(parents=True)
    init(root, capsys)
    assert "phases/.gitkeep" not in tree(root)


def test_from_a_folder_below_the_tree_is_planted_at_the_root(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "src" / "deep").mkdir(parents=True)
    init(root / "src" / "deep", capsys)
    assert (root / ".yolo-planning" / "config.json").is_file()


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_planning_tree_that_is_no_folder_is_refused(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    if kind == "link":
        (root / ".yolo-planning").symlink_to(tmp_path / "elsewhere")
    else:
        (root / ".yolo-planning").write_text("")
    code, answer = init(root, capsys)
    assert (code, reasons(answer)) == (Exit.NOT_HERE, ["not_regular"])
    assert not list((tmp_path / "elsewhere").iterdir())


def test_outside_a_repository_it_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = init(tmp_path, capsys)
    assert (code, reasons(answer)) == (Exit.NOT_HERE, ["not_a_repository"])


# --- the configuration -----------------------------------------------------------------------------------------------


def test_the_planted_configuration_says_the_documented_defaults() -> None:
    said = json.loads(template()["config.json"])
    assert config_from(said) == Config()
    assert json.dumps(said, indent=2) + "\n" == template()["config.json"].decode()


@pytest.mark.parametrize(
    ("asked", "active", "workflow"),
    [
        ("backend", {"backend"}, "backend_only"),
        ("frontend", {"backend", "frontend"}, "parallel"),
        ("uiux, backend,frontend", {"backend", "frontend", "uiux"}, "parallel"),
    ],
)
def test_departments_go_into_the_configuration(
    root: Path, capsys: pytest.CaptureFixture[str], asked: str, active: set[str], workflow: str
) -> None:
    code, _ = init(root, capsys, "--departments", asked)
    config = json.loads((root / ".yolo-planning" / "config.json").read_text())
    assert (code, check(shape_of(Config), config)[1]) == (Exit.DONE, ())
    assert {name for name, is_active in config["departments"].items() if is_active} == active
    assert config["department_workflow"] == workflow


def test_an_unknown_department_is_a_usage_error(root: Path) -> None:
    assert run(["init", "-C", str(root), "--departments", "backend,legal"]) == Exit.USAGE
    assert not (root / ".yolo-planning").exists()


def test_departments_that_the_kept_configuration_lacks_are_a_finding(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    init(root, capsys)
    code, answer = init(root, capsys, "--departments", "frontend")
    assert (code, reasons(answer)) == (Exit.FINDINGS, ["state_conflict"])
    assert init(root, capsys, "--departments", "backend")[0] == Exit.DONE


# --- our own rules of git --------------------------------------------------------------------------------------------


def test_runtime_files_are_ignored_and_the_configuration_is_not(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    init(root, capsys)
    names = [pattern.replace("*", "backend.json") for pattern in RUNTIME if pattern.startswith(".")]
    assert names
    assert all(is_ignored(root, f".yolo-planning/phases/01-auth/{name}") for name in names)
    assert not is_ignored(root, ".yolo-planning/config.json")


def test_our_rules_hold_no_artifact(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    init(root, capsys)
    rules = PathRules(Repository(str(root)))
    held = {path: rules.reason_to_hold(path, in_head=False) for path in example_paths()}
    rules.close()
    kept = {path for path, reason in held.items() if reason is not None}
    assert {path.rpartition("/")[2] for path in kept} == set(IGNORED_STATES)


def test_each_example_path_is_an_artifact() -> None:
    assert all(classify(path) for path in example_paths())


def test_lines_that_our_gitignore_lacks_are_added_below_what_is_there(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ignore = root / ".yolo-planning" / ".gitignore"
    ignore.parent.mkdir()
    ignore.write_text("my-notes.md\n.ctx-*")
    _, answer = init(root, capsys)
    lines = ignore.read_text().splitlines()
    deed = next(
        deed for deed in answer["data"]["deeds"] if deed["path"] == ".yolo-planning/.gitignore"
    )
    assert lines[:2] == ["my-notes.md", ".ctx-*"]
    assert (deed["did"], lines[2:]) == ("extended", deed["lines"])
    assert len(set(lines)) == len(lines)


def test_the_users_own_rules_are_not_touched(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / ".gitignore").write_text("build/")
    init(root, capsys)
    assert (root / ".gitignore").read_text() == "build/"
    assert not (root / ".gitattributes").exists()


# --- the user's rules of git -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [".yolo-planning/", "*.jsonl"])
def test_a_rule_that_ignores_artifacts_is_named_with_its_line(
    root: Path, capsys: pytest.CaptureFixture[str], rule: str
) -> None:
    (root / ".gitignore").write_text(f"build/\n{rule}\n")
    code, answer = init(root, capsys)
    (finding,) = answer["findings"]
    assert (code, finding["reason"], finding["level"]) == (Exit.DONE, "gitignored", "warning")
    assert (finding["path"], finding["line"]) == (".gitignore", 2)
    assert rule in finding["message"]
    assert "commit_ignored" in finding["hint"]


def test_who_commits_ignored_artifacts_hears_nothing_of_it(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / ".gitignore").write_text(".yolo-planning/\n")
    (tmp_path / "config" / "yolo-fs").mkdir(parents=True)
    (tmp_path / "config" / "yolo-fs" / "config.json").write_text(
        '{"policy": {"commit_ignored": true}}'
    )
    assert init(root, capsys)[1]["findings"] == []


def test_a_filter_on_artifacts_is_told(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / ".gitattributes").write_text("*.jsonl filter=lfs\n")
    code, answer = init(root, capsys)
    assert (code, reasons(answer)) == (Exit.DONE, ["attr_filter"])


# --- the plan --------------------------------------------------------------------------------------------------------


def test_the_plan_is_made_of_values_and_touches_nothing(root: Path) -> None:
    deeds = plan(str(root), [Dept.UIUX])
    assert all(isinstance(deed, Create) for deed in deeds)
    assert deeds == plan(str(root), [Dept.UIUX])
    assert not (root / ".yolo-planning").exists()


def test_half_a_file_is_not_left_behind(root: Path) -> None:
    """Each file of `init` is cut off after half a KiB: `ulimit -f 1`, the kernel's own limit."""
    planned = {
        deed.path.removeprefix(".yolo-planning/"): deed.data
        for deed in plan(str(root))
        if isinstance(deed, Create)
    }
    command = f"ulimit -f 1; exec '{sys.executable}' -m yolo_fs init -q -C '{root}'"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == Exit.TRY_AGAIN, done
    assert "storage_failed: .yolo-planning/README.md: " in done.stderr
    assert tree(root).items() <= planned.items()
    assert run(["init", "-C", str(root), "-q"]) == Exit.DONE
    assert tree(root) == planned


def test_lines_are_added_once(root: Path) -> None:
    carry_out(str(root), plan(str(root)))
    (root / ".yolo-planning" / ".gitattributes").write_text("*.json text eol=lf\r\n*.md text\r\n")
    (added,) = (deed for deed in plan(str(root)) if not isinstance(deed, Keep))
    assert isinstance(added, AddLines)
    assert added.lines == ("*.jsonl text eol=lf", "*.toon text eol=lf", "*.md text eol=lf")


# --- the git hooks ---------------------------------------------------------------------------------------------------


def test_the_git_hooks_are_installed_and_a_second_time_kept(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [{hook["did"] for hook in init(root, capsys)[1]["data"]["hooks"]} for _ in range(2)]
    assert said == [{"created"}, {"kept"}]
    assert os.access(root / ".git/hooks/pre-commit", os.X_OK)


@pytest.mark.parametrize(("option", "count"), [("--no-hooks", 0), ("--dry-run", 1 + len(NAMES))])
def test_no_git_hook_is_installed_and_a_dry_run_lists_them(
    root: Path, capsys: pytest.CaptureFixture[str], option: str, count: int
) -> None:
    before = sorted((root / ".git").rglob("*"))
    assert len(init(root, capsys, option)[1]["data"]["hooks"]) == count
    run(["init", option, "-C", str(root)])
    assert capsys.readouterr().out.count(".git/hooks/") == max(0, count - 1)
    assert [path for path in sorted((root / ".git").rglob("*")) if path not in before] == []


def test_a_hook_that_must_not_be_touched_is_a_warning(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = root / ".git/hooks/pre-push"
    target = root / "their-hook"
    target.write_text("#!/usr/bin/env python3\n")
    hook.symlink_to(target)
    code, answer = init(root, capsys)
    assert (code, reasons(answer), hook.read_text()) == (
        Exit.DONE,
        ["hook_broken"],
        "#!/usr/bin/env python3\n",
    )


# --- team, commit, daemon --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("team", ["solo", "pair", "company"])
def test_the_team_goes_into_the_configuration(
    root: Path, capsys: pytest.CaptureFixture[str], team: str
) -> None:
    code, answer = init(root, capsys, "--team", team)
    assert (code, answer["data"]["team"]) == (Exit.DONE, team)
    assert json.loads(tree(root)["config.json"])["company"]["team"] == team


def test_another_team_than_the_kept_configuration_has_is_a_finding(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    init(root, capsys, "--team", "pair")
    before = tree(root)
    code, answer = init(root, capsys, "--team", "solo")
    assert (code, reasons(answer)) == (Exit.FINDINGS, ["state_conflict"])
    assert "go --team solo" in answer["findings"][0]["hint"]
    assert tree(root) == before


def test_told_to_commit_it_commits_what_it_made_and_nothing_of_the_users(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git = ("git", "-C", str(root), "-c", "user.name=A", "-c", "user.email=a@example.org")
    (root / "mine.txt").write_text("first")
    subprocess.run([*git, "add", "mine.txt"], check=True)
    subprocess.run([*git, "commit", "-qm", "chore: begin"], check=True)
    (root / "mine.txt").write_text("staged")
    subprocess.run([*git, "add", "mine.txt"], check=True)
    (root / ".yolo-planning").mkdir()
    (root / ".yolo-planning/PROJECT.md").write_text("# Mine\n")
    code, answer = init(root, capsys, "--commit")
    assert code == Exit.DONE and answer["data"]["commit"]
    shown = subprocess.check_output([*git, "show", "--format=%s", "--name-only"], text=True)
    subject, *files = filter(None, shown.split("\n"))
    assert subject == "chore(repo): add yolo"
    made = {deed["path"] for deed in answer["data"]["deeds"] if deed["did"] == "created"}
    assert set(files) == made and ".yolo-planning/PROJECT.md" not in made
    status = subprocess.check_output([*git, "status", "--porcelain", "-uall"], text=True)
    assert status == "M  mine.txt\n?? .yolo-planning/PROJECT.md\n"
    assert run(["verify", "-C", str(root)]) == Exit.DONE


@pytest.mark.usefixtures("no_second_names")
def test_on_a_file_system_without_hard_links_it_makes_and_commits_the_same(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = init(root, capsys, "--commit")
    assert code == Exit.DONE and answer["data"]["commit"] and answer["findings"] == []
    assert git(root, "status", "--porcelain") == ""


def test_told_to_commit_it_makes_nothing_as_long_as_nobody_may_commit(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is to be committed and cannot be is not made either."""
    lock = root / ".git/index.lock"
    lock.touch()
    code, answer = init(root, capsys, "--commit")
    assert (code, reasons(answer)) == (Exit.TRY_AGAIN, ["index_locked"])
    assert not (root / ".yolo-planning").exists() and lock.exists()
    lock.unlink()
    code, answer = init(root, capsys, "--commit")
    assert code == Exit.DONE and answer["data"]["commit"]


def test_what_git_ignores_is_made_and_not_committed(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / ".gitignore").write_text(".yolo-planning/\n")
    code, answer = init(root, capsys, "--commit")
    assert (code, reasons(answer)) == (Exit.FINDINGS, ["gitignored"])
    assert (root / ".yolo-planning/config.json").exists() and answer["data"]["commit"] == ""


def git(root: Path, *words: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    return subprocess.check_output(["git", "-C", str(root), *identity, *words], text=True)


@pytest.mark.parametrize("choices", [(), ("--team", "solo", "--departments", "frontend")])
def test_told_to_commit_later_it_commits_what_it_made_before(
    root: Path, capsys: pytest.CaptureFixture[str], choices: tuple[str, ...]
) -> None:
    init(root, capsys, *choices)
    shown = init(root, capsys, "--commit", "--dry-run")[1]["data"]
    assert shown["commit"] == "" and git(root, "status", "--porcelain") == "?? .yolo-planning/\n"
    code, answer = init(root, capsys, "--commit")
    assert code == Exit.DONE and answer["data"]["commit"] and answer["findings"] == []
    committed = git(root, "show", "--format=", "--name-only").split()
    assert set(committed) == set(answer["data"]["commits"]) == set(shown["commits"])
    assert git(root, "status", "--porcelain") == ""
    assert run(["init", "--commit", "-C", str(root)]) == Exit.DONE
    assert "nothing is left to commit" in capsys.readouterr().out


def test_told_to_commit_later_it_leaves_what_somebody_has_changed_and_says_so(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    init(root, capsys)
    for name in ("PROJECT.md", ".gitignore"):
        with (root / ".yolo-planning" / name).open("a") as file:
            file.write("mine\n")
    code, answer = init(root, capsys, "--commit")
    assert (code, reasons(answer)) == (Exit.DONE, ["state_conflict"])
    (finding,) = answer["findings"]
    left = {".yolo-planning/PROJECT.md", ".yolo-planning/.gitignore"}
    assert left == set(finding["command"].split()[-2:])
    assert answer["data"]["commit"] and not left & set(answer["data"]["commits"])
    assert all(f"?? {path}" in git(root, "status", "--porcelain", "-uall") for path in left)
    assert init(root, capsys, "--commit")[1]["findings"] == answer["findings"]


def told_of_uncommitted(root: Path, capsys: pytest.CaptureFixture[str]) -> set[tuple[str, str]]:
    """Return file and command of what status, doctor and inbox tell of files that init made."""
    told = []
    for verb in ("status", "doctor", "inbox"):
        run([verb, "-C", str(root), "--json"])
        answer = json.loads(capsys.readouterr().out)
        found = {
            (one["path"], one["command"])
            for one in answer["findings"]
            if one["reason"] == "not_committed"
        }
        if verb == "inbox":
            found = {
                (one["id"].partition(":")[2], one["command"])
                for one in answer["data"]
                if one["id"].startswith("not_committed:")
            }
        told.append(found)
    assert told == [told[0]] * 3
    return told[0]


def test_what_it_made_and_nobody_has_committed_is_named_until_it_is(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    init(root, capsys)
    project = ".yolo-planning/PROJECT.md"
    assert told_of_uncommitted(root, capsys) == {(project, "yolo-fs init --commit")}
    assert run(["init", "-C", str(root)]) == Exit.DONE
    assert "git add .yolo-planning && git commit" in capsys.readouterr().out
    with (root / project).open("a") as file:
        file.write("A shop.\n")
    init(root, capsys, "--commit")
    ((path, command),) = told_of_uncommitted(root, capsys)
    assert path == project
    environ = {**os.environ, "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org"}
    environ |= {"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org"}
    (root / "mine.txt").write_text("mine")
    git(root, "add", "mine.txt")
    subprocess.run(command, shell=True, cwd=root, env=environ, check=True)
    assert told_of_uncommitted(root, capsys) == set()
    assert git(root, "status", "--porcelain") == "A  mine.txt\n"


def test_what_git_is_told_to_ignore_is_left_uncommitted_on_purpose(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    init(root, capsys)
    (root / ".git/info/exclude").write_text("/.yolo-planning/\n")
    assert told_of_uncommitted(root, capsys) == set()


def test_a_dry_run_lists_the_commit(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--commit", "--dry-run", "-C", str(root)]) == Exit.DONE
    shown = capsys.readouterr().out
    assert "committed 8 files chore(repo): add yolo" in shown and "git add" not in shown
    _, answer = init(root, capsys, "--commit", "--dry-run")
    assert len(answer["data"]["commits"]) == 8 and not (root / ".yolo-planning").exists()


@pytest.mark.parametrize("rule", [".yolo-planning/", "*.md"])
def test_as_long_as_git_ignores_its_files_it_says_so_each_time_and_names_no_vain_command(
    root: Path, capsys: pytest.CaptureFixture[str], rule: str
) -> None:
    (root / ".gitignore").write_text(f"build/\n{rule}\n")
    told = []
    for options in (("--commit", "--dry-run"), ("--commit",), ("--commit",)):
        code, answer = init(root, capsys, *options)
        (finding,) = answer["findings"]
        assert (code, answer["data"]["commit"]) == (Exit.FINDINGS, "")
        assert answer["data"]["next"][0] == "yolo-fs init --commit"
        assert "git add" not in json.dumps(answer)
        told.append(finding)
    assert told == [told[0]] * 3
    assert (told[0]["path"], told[0]["line"]) == (".gitignore", 2)
    shown = subprocess.check_output(told[0]["command"], shell=True, cwd=root, text=True)
    assert shown.startswith(f".gitignore:2:{rule}")
    assert run(["init", "--commit", "-C", str(root)]) == Exit.FINDINGS
    assert "yolo-fs init --commit" in capsys.readouterr().out
    (root / ".gitignore").unlink()
    code, answer = init(root, capsys, "--commit")
    assert code == Exit.DONE and answer["data"]["commit"]


def test_on_a_terminal_it_asks_for_what_the_command_line_leaves_open(root: Path) -> None:
    command = [sys.executable, "-P", "-m", "yolo_fs", "init"]
    terminal = Terminal(command, root, dict(os.environ))
    try:
        terminal.until("How much of the company works?")
        terminal.type("solo\n")
        terminal.until("Who works on a phase?")
        terminal.type("backend,marketing\n")
        terminal.until("'marketing' is none of backend, frontend, uiux")
        terminal.type("backend,frontend\n")
        terminal.until("Commit the files")
        terminal.type("y\n")
        terminal.until("Start the daemon?")
        terminal.type("y\n")
        assert terminal.end() == 0, terminal.shown
        config = json.loads(tree(root)["config.json"])
        assert config["company"]["team"] == "solo"
        assert config["departments"] == {"backend": True, "frontend": True, "uiux": False}
        assert b"git add" not in terminal.shown and b"yolo-fs phase new" in terminal.shown
        shown = subprocess.check_output(["git", "-C", str(root), "log", "--format=%s"], text=True)
        assert shown == "chore(repo): add yolo\n"
        assert b"chore(repo): add yolo" in terminal.shown
    finally:
        assert run(["stop", "-C", str(root)]) == Exit.DONE


@pytest.mark.usefixtures("on_path")
def test_a_host_is_set_up_in_the_same_command(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = root / ".claude/settings.json"
    assert run(["init", "-C", str(root), "--host", "claude", "--dry-run"]) == Exit.DONE
    assert ".claude/settings.json" in capsys.readouterr().out and not settings.exists()
    assert run(["init", "-C", str(root), "--host", "claude"]) == Exit.DONE
    shown = capsys.readouterr().out
    assert "yolo-fs hook" in settings.read_text() and "  yolo-fs setup" not in shown
    assert run(["setup", "claude", "--check", "-C", str(root)]) == Exit.DONE


def test_below_the_root_the_next_command_names_the_tree_from_there(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "src/deep").mkdir(parents=True)
    assert run(["init", "-C", str(root / "src/deep")]) == Exit.DONE
    shown = capsys.readouterr().out
    assert "git add ../../.yolo-planning && git commit" in shown
    assert shown.count(" ../../.") == shown.count(".yolo-planning/") + shown.count("/.git/") + 2


def test_the_commit_that_it_names_takes_nothing_that_was_staged(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A person")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "a@example.org")
    (root / "staged.py").write_text("x = 1\n")
    subprocess.run(["git", "add", "staged.py"], cwd=root, check=True)
    assert run(["init", "-C", str(root)]) == Exit.DONE
    [line] = [line for line in capsys.readouterr().out.splitlines() if "git commit" in line]
    subprocess.run(["sh", "-ec", line], cwd=root, check=True)
    left = subprocess.check_output(["git", "status", "--porcelain"], cwd=root, text=True)
    assert left == "A  staged.py\n"


def test_a_dry_run_names_the_commands_that_come_next(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / ".cursor").mkdir()
    assert run(["init", "-C", str(root), "--dry-run", "--team", "pair"]) == Exit.DONE
    shown = capsys.readouterr().out
    assert "yolo-fs setup cursor" in shown and "yolo-fs start" in shown
    assert not (root / ".yolo-planning").exists()


def test_hooks_that_cannot_be_made_keep_nobody_from_the_planning_tree(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(root / ".git/hooks")
    (root / ".git/hooks").write_text("no folder\n")
    code, answer = init(root, capsys, "--commit")
    assert code == Exit.DONE
    assert answer["data"]["commit"] and answer["data"]["hooks"] == []
    assert [each for each in answer["findings"] if "hooks install" in each["hint"]]
    assert run(["hooks", "install", "-C", str(root)]) != Exit.DONE


HOOK = "#!/bin/sh\nexit 0\n"


def with_shared_hooks(root: Path) -> Path:
    hook = root / ".husky" / "pre-commit"
    hook.parent.mkdir()
    hook.write_text(HOOK)
    hook.chmod(0o755)
    subprocess.run(["git", "-C", root, "config", "core.hooksPath", ".husky"], check=True)
    return hook


def test_hooks_among_the_files_of_a_team_change_only_where_it_is_asked_for(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = with_shared_hooks(root)
    code, answer = init(root, capsys)
    assert (code, answer["data"]["hooks"]) == (Exit.DONE, [])
    [warning] = [one for one in answer["findings"] if one["reason"] == "hook_broken"]
    assert warning["path"] == ".husky"
    assert "yolo-fs hooks install" in warning["hint"]
    assert [path.name for path in hook.parent.iterdir()] == ["pre-commit"]
    assert hook.read_text() == HOOK


def test_a_dry_run_names_no_hook_that_the_run_leaves_alone(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_shared_hooks(root)
    assert init(root, capsys, "--dry-run")[1]["data"]["hooks"] == []


@pytest.mark.parametrize("typed", ["n", "y"])
def test_on_a_terminal_it_asks_before_a_hook_of_the_team_is_changed(root: Path, typed: str) -> None:
    hook = with_shared_hooks(root)
    command = [sys.executable, "-m", "yolo_fs", "init", "--team", "solo", "--commit", "--start"]
    command += ["--departments", "backend"]
    terminal = Terminal(command, root, dict(os.environ))
    try:
        terminal.until("pre-push")
        terminal.until("Change these?")
        assert hook.read_text() == HOOK
        terminal.type(f"{typed}\n")
        assert terminal.end() == 0, terminal.shown
    finally:
        subprocess.run([sys.executable, "-m", "yolo_fs", "stop", "-C", root], check=True)
    assert ("git-hook" in hook.read_text()) is (typed == "y")
    assert b"hooks install" not in terminal.shown  # it was answered


@pytest.mark.parametrize(
    ("leave_out", "way_back"),
    [
        (["sparse-checkout", "set", "src"], "sparse-checkout add .yolo-planning"),
        (["rm", "-rq", "--cached", "."], None),
        (["stash", "list"], "restore .yolo-planning"),
        (["read-tree", "--empty"], "restore --source=HEAD --staged --worktree .yolo-planning"),
    ],
    ids=[
        "a sparse checkout",
        "a tree that HEAD has not",
        "a tree that was deleted",
        "a clone without files",
    ],
)
def test_a_planning_tree_that_head_has_is_brought_back_and_not_made_anew(
    root: Path, capsys: pytest.CaptureFixture[str], leave_out: list[str], way_back: str | None
) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", root, "-c", "user.name=A", "-c", "user.email=a@b", *words], check=True)  # fmt: skip

    init(root, capsys, "--no-hooks")
    (root / "src").mkdir()
    (root / "src/x").write_text("x\n")
    git("add", "-A")
    git("commit", "-q", "-m", "chore: begin")
    git(*leave_out)
    if way_back is None:
        git("commit", "-q", "-m", "chore: without a tree")
    shutil.rmtree(root / ".yolo-planning", ignore_errors=True)

    code, answer = init(root, capsys, "--no-hooks", "--dry-run")

    if way_back is None:
        assert code == Exit.DONE
        return
    assert (code, answer["findings"][0]["command"]) == (Exit.NOT_HERE, f"git {way_back}")
    assert run(["status", "-C", str(root), "--json"]) == Exit.DONE
    status = json.loads(capsys.readouterr().out)
    assert f"git {way_back}" in {one["command"] for one in status["findings"]}
    git(*way_back.split())
    assert (root / ".yolo-planning/config.json").is_file()
    git(*way_back.split())
    assert init(root, capsys, "--no-hooks", "--dry-run")[0] == Exit.DONE


@pytest.mark.parametrize("kind", ["checked out", "not checked out", "a repository of its own"])
def test_no_planning_tree_is_made_in_another_repository(
    root: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    def git(*words: str) -> str:
        command = ["git", "-C", root, "-c", "user.name=A", "-c", "user.email=a@b", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    tree = root / ".yolo-planning"
    if kind != "not checked out":
        git("init", "-q", str(tree))
    if kind != "a repository of its own":
        git("commit", "-q", "--allow-empty", "-m", "chore: begin")
        git(
            "update-index", "--add", "--cacheinfo", f"160000,{git('rev-parse', 'HEAD')},{tree.name}"
        )
        git("commit", "-q", "-m", "chore: plans are elsewhere")
        (root / ".gitmodules").touch()
    tree.mkdir(exist_ok=True)
    before = {path.name for path in tree.iterdir()}

    code, answer = init(root, capsys)

    assert (code, answer["findings"][0]["reason"]) == (Exit.FINDINGS, "foreign_repository")
    assert {path.name for path in tree.iterdir()} == before
    assert not (root / ".git/hooks/commit-msg").exists()
