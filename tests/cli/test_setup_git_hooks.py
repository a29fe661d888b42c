"""`hooks` says what it did and what it would do, and the same file answers as a command."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit
from yolo_fs.hooks.githooks import NAMES
from yolo_fs.hooks.run import HOOKS
from yolo_fs.protocol.hooks import GIT_HOOKS


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    work_tree = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", str(work_tree)], check=True)
    return work_tree.resolve()


def hooks(
    root: Path, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, dict[str, Any]]:
    code = run(["hooks", *arguments, "-C", str(root), "--json"])
    return code, json.loads(capsys.readouterr().out)


def deeds(answer: dict[str, Any]) -> set[str]:
    return {deed["did"] for deed in answer["data"]["deeds"]}


def test_every_hook_of_the_table_that_is_to_be_installed_has_an_answer() -> None:
    assert tuple(HOOKS) == NAMES == tuple(row.name for row in GIT_HOOKS if row.installed)


def test_install_says_what_it_did_and_a_second_time_kept_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [
        (code, deeds(answer)) for code, answer in (hooks(root, capsys, "install") for _ in range(2))
    ] == [
        (Exit.DONE, {"created"}),
        (Exit.DONE, {"kept"}),
    ]


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_a_dry_run_changes_nothing(
    root: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    if verb == "uninstall":
        hooks(root, capsys, "install")
    before = sorted(path for path in root.rglob("*") if path.is_file())
    code, answer = hooks(root, capsys, verb, "--dry-run")
    assert (code, len(answer["data"]["deeds"]) > len(NAMES)) == (Exit.DONE, True)
    assert sorted(path for path in root.rglob("*") if path.is_file()) == before


def test_uninstall_where_nothing_is_installed_does_nothing(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = hooks(root, capsys, "uninstall")
    assert (code, answer["data"]["deeds"]) == (Exit.DONE, [])


def test_the_doctor_says_when_nothing_is_installed(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = hooks(root, capsys, "doctor")
    assert (code, answer["findings"], answer["data"]["hooks"]) == (Exit.DONE, [], [])
    assert run(["hooks", "doctor", "-C", str(root)]) == Exit.DONE
    assert "no hook of ours is installed" in capsys.readouterr().out


def test_both_doctors_agree_on_hooks_that_init_has_left_alone_and_on_those_that_are_broken(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def judged(*words: str) -> tuple[int, bool]:
        code = run([*words, "-C", str(root), "--json"])
        told = json.loads(capsys.readouterr().out)["findings"]
        return code, "hook_broken" in {each["reason"] for each in told}

    git = ("git", "-C", str(root))
    (root / ".hk").mkdir()
    subprocess.run([*git, "config", "core.hooksPath", ".hk"], check=True)
    assert run(["init", "-C", str(root)]) == Exit.DONE
    capsys.readouterr()
    assert judged("hooks", "doctor") == judged("doctor") == (Exit.DONE, False)
    hooks(root, capsys, "install")
    (root / ".git/yolo-fs/git-hook").unlink()
    (root / ".hk/commit-msg").unlink()
    assert judged("hooks", "doctor") == judged("doctor") == (Exit.FINDINGS, True)


def test_a_hook_that_is_left_alone_is_a_finding_with_the_way_out(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = root / ".git/hooks/pre-push"
    hook.symlink_to("/bin/true")
    code, answer = hooks(root, capsys, "install")
    assert (code, answer["findings"][0]["hint"]) == (
        Exit.FINDINGS,
        'Let it call: yolo-fs git-hook pre-push "$@"',
    )


def test_people_see_the_deeds(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hooks", "install", "-C", str(root)]) == Exit.DONE
    assert "created" in capsys.readouterr().out
    assert run(["hooks", "doctor", "-C", str(root)]) == Exit.DONE
    assert capsys.readouterr().out == "8 hooks run in 1 work tree\n"


@pytest.mark.parametrize(
    ("subject", "code"),
    [("wrong 01-01", 1), ("wrong", 0), ("feat(01-01): right", 0), ("# a comment", 0)],
)
def test_a_hook_manager_asks_by_command(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    subject: str,
    code: int,
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setenv("CLAUDECODE", "1")
    (root / ".yolo-planning").mkdir()
    (root / "message").write_text(f"\n{subject}\n\n# with its comments\n")
    assert run(["git-hook", "commit-msg", "message"]) == code
    assert ("the commit is refused" in capsys.readouterr().err) is bool(code)


def test_a_hook_that_git_has_not_is_a_usage_error() -> None:
    assert run(["git-hook", "pre-lunch"]) == Exit.USAGE


@pytest.mark.proves("hosts:19")
def test_the_hooks_for_the_pre_commit_framework_call_what_there_is() -> None:
    text = (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text()
    called = [line.rpartition(" ")[2] for line in text.splitlines() if "entry:" in line]
    assert set(called) <= set(NAMES)
    assert len(called) == text.count("- id: yolo-fs-")
