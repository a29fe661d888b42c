"""What git's own rules say of a path, and that a change of the rules is noticed. See
docs/faults.md#f33 and #f62.
"""

from __future__ import annotations

import os
import random
import signal

import pytest

from tests.edges.git.conftest import PHASE, PLAN, Engines, Make, User
from yolo_fs.edges.git import runner
from yolo_fs.reasons import Reason, YoloError

IGNORED, FILTERED = Reason.GITIGNORED, Reason.ATTR_FILTER


@pytest.mark.parametrize(
    ("file", "lines", "reason"),
    [
        (".gitignore", ".yolo-planning/\n", IGNORED),
        (".gitignore", "*.jsonl\n", IGNORED),
        (".gitignore", "*.json\n", None),
        (".gitignore", f"/{PLAN}\n", IGNORED),
        (".gitignore", "*.jsonl\n!*.plan.jsonl\n", None),
        (".gitignore", "!*.plan.jsonl\n*.jsonl\n", IGNORED),
        (".gitignore", ".yolo-planning/\n!*.plan.jsonl\n", IGNORED),
        (".gitignore", "\\!x\n# *.jsonl\n", None),
        (".yolo-planning/.gitignore", "phases/*/01-01*\n", IGNORED),
        (f"{PHASE}/.gitignore", "*\n", IGNORED),
        (f"{PHASE}/.gitignore", "*\n!*.plan.jsonl\n", None),
        (".git/info/exclude", "*.plan.jsonl\n", IGNORED),
        (".gitattributes", "*.jsonl text=auto eol=lf\n", None),
        (
            ".gitattributes",
            "* text=auto\n*.jsonl text eol=crlf diff=json merge=union -whitespace\n",
            None,
        ),
        (".gitattributes", "*.jsonl filter=lfs diff=lfs merge=lfs -text\n", FILTERED),
        (".gitattributes", "*.jsonl filter=lfs\n*.plan.jsonl -filter\n", None),
        (".gitattributes", "*.jsonl filter=lfs\n*.plan.jsonl !filter\n", None),
        (".gitattributes", "*.jsonl ident\n", FILTERED),
        (".gitattributes", "*.jsonl -ident\n", None),
        (".gitattributes", "*.jsonl working-tree-encoding=UTF-16\n", FILTERED),
        (".gitattributes", "[attr]big filter=lfs\n*.jsonl big\n", FILTERED),
        (f"{PHASE}/.gitattributes", "*.plan.jsonl filter=x\n", FILTERED),
        (".git/info/attributes", "*.jsonl filter=x\n", FILTERED),
        ("../home/.config/git/ignore", "*.jsonl\n", IGNORED),
        ("../home/.config/git/attributes", "*.jsonl filter=x\n", FILTERED),
    ],
)
def test_the_rules_of_git_hold_a_path(
    user: User, engine: Engines, file: str, lines: str, reason: Reason | None
) -> None:
    user.write(file, lines)
    assert engine(user).rules.reason_to_hold(PLAN, in_head=False) is reason


def test_the_configured_excludes_file_counts(user: User, engine: Engines) -> None:
    user.write("../excludes", "*.plan.jsonl\n")
    user.git("config", "core.excludesFile", str(user.root.parent / "excludes"))
    assert engine(user).rules.reason_to_hold(PLAN, in_head=False) is IGNORED


def test_a_tracked_path_is_not_ignored_but_still_filtered(user: User, engine: Engines) -> None:
    user.write(".gitignore", "*.jsonl\n")
    rules = engine(user).rules
    assert rules.reason_to_hold(PLAN, in_head=True) is None
    assert rules.reason_to_hold(PLAN, in_head=False) is IGNORED
    user.write(".gitattributes", "*.jsonl filter=lfs\n")
    assert rules.reason_to_hold(PLAN, in_head=True) is FILTERED


def test_a_path_that_is_only_staged_is_still_ignored(user: User, engine: Engines) -> None:
    user.write(".gitignore", "*.jsonl\n")
    user.add(PLAN, "x\n")
    assert engine(user).rules.reason_to_hold(PLAN, in_head=False) is IGNORED


def test_ignored_paths_may_be_allowed_but_not_filtered_ones(user: User, engine: Engines) -> None:
    user.write(".gitignore", "*.jsonl\n")
    user.write(".gitattributes", "a.jsonl ident\n")
    rules = engine(user, commit_ignored=True).rules
    assert rules.reason_to_hold(PLAN, in_head=False) is None
    assert rules.reason_to_hold("a.jsonl", in_head=False) is FILTERED


def test_each_folder_has_its_own_rules(user: User, engine: Engines) -> None:
    user.write("a/.gitignore", "*.jsonl\n")
    rules = engine(user).rules
    asked = ["a/x.jsonl", "b/x.jsonl", "x.jsonl", "a/b/x.jsonl", "a/x.md"]
    assert [rules.reason_to_hold(path, in_head=False) for path in asked] == [
        IGNORED,
        None,
        None,
        IGNORED,
        None,
    ]


@pytest.mark.parametrize(
    ("file", "lines", "reason"),
    [
        (".gitignore", "*.jsonl\n", IGNORED),
        (f"{PHASE}/.gitignore", "*.jsonl\n", IGNORED),
        (".gitattributes", "*.jsonl ident\n", FILTERED),
        (".git/info/exclude", "*.jsonl\n", IGNORED),
        (".git/info/attributes", "*.jsonl ident\n", FILTERED),
        ("../home/.config/git/ignore", "*.jsonl\n", IGNORED),
        ("../home/.gitconfig", "[core]\n\texcludesFile = ~/mine\n", IGNORED),
        ("../home/excludes", "*.jsonl\n", IGNORED),
    ],
)
def test_a_changed_rule_is_noticed_both_ways(
    user: User, engine: Engines, file: str, lines: str, reason: Reason
) -> None:
    user.git("config", "core.excludesFile", "~/excludes") if file.endswith("/excludes") else None
    user.write("../home/mine", "*.jsonl\n")
    rules = engine(user).rules
    assert rules.reason_to_hold(PLAN, in_head=False) is None
    user.write(file, lines)
    assert rules.reason_to_hold(PLAN, in_head=False) is reason
    (user.root / file).unlink()
    assert rules.reason_to_hold(PLAN, in_head=False) is None


def test_a_rule_of_the_same_size_and_time_is_noticed(user: User, engine: Engines) -> None:
    place = user.write(".gitignore", "*.xsonl\n")
    rules, then = engine(user).rules, place.stat()
    assert rules.reason_to_hold(PLAN, in_head=False) is None
    user.write(".gitignore", "*.jsonl\n\n"[:8])
    os.utime(place, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert rules.reason_to_hold(PLAN, in_head=False) is IGNORED


def test_a_helper_that_died_is_started_anew(user: User, engine: Engines) -> None:
    rules = engine(user).rules
    assert rules.reason_to_hold("a.jsonl", in_head=False) is None
    for helper in (rules._ignore, rules._attributes):
        os.kill(helper.pid, signal.SIGKILL)
    try:
        assert rules.reason_to_hold("b.jsonl", in_head=False) is None
    except YoloError:
        assert rules.reason_to_hold("b.jsonl", in_head=False) is None


def test_a_path_that_git_refuses_to_judge_does_not_stop_the_others(
    user: User, engine: Engines
) -> None:
    (user.root / "link").symlink_to("elsewhere")
    rules = engine(user).rules
    with pytest.raises(YoloError):
        rules.reason_to_hold("link/x.jsonl", in_head=False)
    assert rules.reason_to_hold(PLAN, in_head=False) is None


@pytest.mark.parametrize("kind", ["submodule", "nested repository", "linked worktree"])
def test_a_path_inside_another_repository_is_not_ours(
    user: User, make: Make, engine: Engines, kind: str
) -> None:
    inner = make("work/inner" if kind == "nested repository" else "elsewhere")
    if kind == "submodule":
        user.git(
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            str(inner.root),
            "inner",
        )
    elif kind == "linked worktree":
        user.git("worktree", "add", "--quiet", "inner", "-b", "inner")
    rules = engine(user).rules
    assert rules.reason_to_hold("inner/deep/x.jsonl", in_head=False) is Reason.FOREIGN_REPOSITORY
    assert rules.reason_to_hold("beside/x.jsonl", in_head=False) is None


def test_a_changed_rule_counts_for_a_folder_that_is_asked_for_the_first_time(
    user: User, engine: Engines
) -> None:
    rules = engine(user).rules
    assert rules.reason_to_hold("a/x.jsonl", in_head=False) is None
    user.write(".gitignore", "*.jsonl\n")
    assert rules.reason_to_hold("b/x.jsonl", in_head=False) is IGNORED


def test_a_repository_that_makes_git_complain_at_length_does_not_freeze_us(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these lines gives a warning; together they fill a pipe that nobody reads."""
    user.write(".gitattributes", "!negative text\n" * 5_000)
    monkeypatch.setattr(runner, "TIMEOUT_S", 1.0)
    assert engine(user).rules.reason_to_hold(PLAN, in_head=False) is None


@pytest.mark.parametrize("seed", range(4))
def test_random_rules_are_judged_as_git_judges_them(user: User, engine: Engines, seed: int) -> None:
    print(f"seed {seed}")
    rng, rules = random.Random(seed), engine(user).rules
    folders = ("", "a/", "a/b/", "c/")
    for _ in range(12):
        patterns = rng.choices(
            [
                "*",
                "*.jsonl",
                "x*",
                "!*",
                "!x.jsonl",
                "/a",
                "a/",
                "b/",
                "!a/",
                "**/b",
                "!b/**",
                "y.md",
            ],
            k=3,
        )
        user.write(f"{rng.choice(folders)}.gitignore", "\n".join(patterns) + "\n")
        asked = [folder + name for folder in folders for name in ("x.jsonl", "y.md")]
        said = user.git("check-ignore", "--no-index", "--", *asked, ok=(0, 1)).decode().split()
        assert [path for path in asked if rules.reason_to_hold(path, in_head=False)] == said
