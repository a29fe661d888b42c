"""The index of a history says of each commit what git says, whoever has filled it and however often it was cut back."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.artifacts.classify import PROJECT_STATE
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git import history
from yolo_fs.git.repository import Repository
from yolo_fs.history import index
from yolo_fs.history.index import HistoryIndex

HISTORIES = int(os.environ.get("YOLO_HISTORIES", "4"))
FIRST = int(os.environ.get("YOLO_SEED", "0"))
OTHERS = ("ada", "bob")
FOLDER = ".yolo-planning/phases/01-auth"
PATHS = (
    *(f"{FOLDER}/01-0{number}.summary.jsonl" for number in range(1, 5)),
    "src/a.ts",
    f"{FOLDER}/decisions.jsonl",
    PROJECT_STATE,
)
SUBJECTS = ("docs(01-01): summary", "feat(01-01): T1 load the keys", "fix(01-02): add the login page", "chore: x",
            "feat(01-02): T2 s\udcfctz", "docs(01): research",
            'Revert "feat(01-01): T1 load the keys"', 'Revert "fix(01-02): add the login page"',
            "chore(state): phase 1 complete")  # fmt: skip

TASKS = (("01-01", "T1", "load the keys"), ("01-02", "T9", "add the login page"))


def a_graph(place: Path, chance: random.Random, count: int) -> list[str]:
    """Make random commits with branches, merges and reverts, and return all in that order."""
    parents: dict[int, list[int]] = {}
    oids: dict[int, str] = {}
    heads, at_s = [1], 1_700_000_000
    importing = ["git", "-C", place, "fast-import", "--quiet", "--force"]
    with subprocess.Popen(importing, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        for mark in range(1, count + 1):
            at_s += chance.choice((-50, 0, 0, 1, 60))
            subject = os.fsencode(chance.choice(SUBJECTS))
            ours = (
                b"\n\nYolo-Artifact: summary\nYolo-Warnings: 2\n" if chance.random() < 0.5 else b""
            )
            message, text = subject + ours, b"%d\n" % mark
            if oids and chance.random() < 0.2:
                taken_back = chance.choice(list(oids))
                above = [
                    f", reversing\nchanges made to {oids[each]}" for each in parents[taken_back]
                ]
                of_merge = chance.choice(above) if len(above) > 1 else ""
                words = chance.choice(
                    (f'Revert "Merge {taken_back}"', "Back out", os.fsdecode(subject))
                )
                message = os.fsencode(
                    f"{words}\n\nThis reverts commit {oids[taken_back]}{of_merge}.\n"
                )
            parents[mark] = chance.sample(heads, min(len(heads), chance.choice((1, 1, 1, 2, 3))))
            said = [
                b"commit refs/heads/all",
                b"mark :%d" % mark,
                b"committer A <a@b> %d +0000" % at_s,
            ]
            said += [b"data %d" % len(message), message]
            if mark > 1:
                said += [
                    b"%s :%d" % (b"merge" if number else b"from", one)
                    for number, one in enumerate(parents[mark])
                ]
            said += [
                b"M 100644 inline %s" % chance.choice(PATHS).encode(),
                b"data %d" % len(text),
                text,
                b"get-mark :%d" % mark,
            ]
            process.stdin.write(b"\n".join(said) + b"\n")
            process.stdin.flush()
            oids[mark] = process.stdout.readline().decode().strip()
            if mark > 1 and chance.random() < 0.75:
                heads = [one for one in heads if one not in parents[mark]]
            heads = [*heads, mark][-4:]
    return list(oids.values())


def answers(of: HistoryIndex, commits: list[str]) -> dict[str, object]:
    """Return what an index says of all that anybody can ask."""
    one_each = of.commit, of.at_s, of.position_of
    of_positions = of.joined_at, of.unseen_by
    return {
        **{f"{ask.__name__} {oid}": ask(oid) for oid in commits for ask in one_each},
        **{
            f"{ask.__name__} {oid}": ask(of.position_of(oid))
            for oid in commits
            for ask in of_positions
        },
        **{f"last {path}": of.last_change(path) for path in PATHS},
        **{f"past {path}": of.past_of(path) for path in PATHS},
        **{f"task {task}": of.of_task(task) for task in ("01-01/T1", "01-02/T2", "01-09/T1")},
        **{f"touching {file}": of.of_task_touching("01-01/T1", {file}) for file in ("src", FOLDER)},
        **{f"undoing {task}": of.undoing(*task) for task in TASKS},
        "undone": of.has_undone(),
        "signed off": of.sign_off_of(1),
        "signed off before": of.repeated_by(of.sign_off_of(1), 1),
        "reverts": of.reverts_by(-1),
        "words": of.of_words("01-02", "Add the  LOGIN page."),
        "marks": [of.mark_of_work(plan)[1] for plan in ("01-01", "01-02")],
        "work": [of.work_on(plan) for plan in ("01-01", "01-02")],
        "tasks": of.tasks_done(),
        "steps": of.steps_said(),
        "ours": of.last_of_ours(5),
        "touches": of.touches(FOLDER),
        "warnings": of.warnings(),
    }


@pytest.fixture
def without_file(monkeypatch: pytest.MonkeyPatch) -> Callable[[Repository], HistoryIndex]:
    """Return what makes an index that finds no file and leaves none: nothing seals one."""

    def made(repository: Repository) -> HistoryIndex:
        found = HistoryIndex(repository)
        found._file_again_s = float("inf")
        return found

    return made


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path / "tree"], check=True)
    yield tmp_path / "tree"


@pytest.mark.parametrize("seed", range(FIRST, FIRST + HISTORIES))
def test_one_index_answers_for_each_commit_as_one_that_was_made_for_it(
    place: Path, without_file: Callable[[Repository], HistoryIndex], seed: int
) -> None:
    chance = random.Random(seed)
    commits = a_graph(place, chance, 60)
    with Repository(str(place)) as repository:
        kept = HistoryIndex(repository)
        for _ in range(25):
            asked = chance.choice(commits)
            if chance.random() < 0.5:  # the branch goes there; else it is only looked at
                repository.git.run("update-ref", "refs/heads/main", asked)
            kept = HistoryIndex(repository) if chance.random() < 0.3 else kept
            fresh = without_file(repository)
            kept.read_up_to(asked)
            fresh.read_up_to(asked)
            assert answers(kept, commits) == answers(fresh, commits), f"seed {seed}: {asked}"
            if chance.random() < 0.5:
                kept.keep()


@pytest.mark.parametrize("seed", range(FIRST, FIRST + HISTORIES))
def test_what_a_commit_contains_are_the_positions_up_to_its_own(place: Path, seed: int) -> None:
    chance = random.Random(seed)
    commits = a_graph(place, chance, 60)
    git = ["git", "-C", str(place), "rev-list"]
    with Repository(str(place)) as repository:
        tip = commits[-1]
        repository.git.run("update-ref", "refs/heads/main", tip)
        found = HistoryIndex(repository)
        for step in sorted(chance.sample(range(30, 60), 3)):  # also where it came in several parts
            repository.git.run("update-ref", "refs/heads/main", commits[step])
            found.read_up_to(commits[step])
        repository.git.run("update-ref", "refs/heads/main", tip)
        found.read_up_to(tip)
        line = subprocess.check_output(
            [*git, "--first-parent", "--reverse", tip], text=True
        ).split()
        for each in line:
            contained = set(subprocess.check_output([*git, each], text=True).split())
            position = found.position_of(each)
            told = {one for one in commits if 0 <= found.position_of(one) <= position}
            assert told == contained, f"seed {seed}: {each}"
            assert {found.position_of(one) for one in contained} == {*range(position + 1)}
            for one in contained:
                after = [found.position_of(above) for above in repository.parents(one)]
                assert all(above < found.position_of(one) for above in after), f"seed {seed}: {one}"
        beyond = set(commits) - set(subprocess.check_output([*git, tip], text=True).split())
        assert {found.position_of(each) for each in beyond} <= {-1}


def test_the_last_change_and_the_history_of_a_path_are_those_that_git_tells(place: Path) -> None:
    team = Team(place)
    path = f"{FOLDER}/01-01.summary.jsonl"
    made = [
        team.user_commits(f"docs: {number}", str(team.file(path, f"{number}")))
        for number in range(3)
    ]
    team.user_commits("chore: elsewhere", str(team.file("src/a.ts", "")))
    with Repository(str(place)) as repository:
        found = HistoryIndex(repository)
        found.read_up_to(team.head())
        assert [one.oid for one in found.past_of(path)] == made
        assert found.last_change(path).oid == made[-1]
        assert found.past_of(path, found.past_of(path)[0]) == found.past_of(path)[1:]
        assert (found.commit(made[0][:7]) or made[1]) != made[1]
        assert found.commit("HEAD") is found.commit("") is found.commit(made[0].upper()) is None


def test_the_last_source_commit_of_a_plan_that_says_the_words_of_a_task_is_found(
    place: Path,
) -> None:
    team = Team(place)
    said = ["feat(01-02): Add the  LOGIN page.", "fix(01-02): add the login page", "fix(01-02): it",
            "feat(01-02): T1 ", "feat(01-03): add the login page", os.fsdecode(b"feat(01-02): s\xfctz")]  # fmt: skip
    team.git("config", "i18n.commitEncoding", "utf-8")
    made = [team.user_commits(subject, str(team.file("a", subject[-3:] + str(at)[:9].encode("ascii", "ignore").decode()))) for at, subject in enumerate(said[:5])]  # fmt: skip
    with Repository(str(place)) as repository:
        found = HistoryIndex(repository)
        found.read_up_to(team.head())
        asked = ("Add the login page", "it", "", ".", "more")
        assert [found.of_words("01-02", words) for words in asked] == [made[1], made[2], "", "", ""]
        assert found.of_words("02-01", "it") == ""


def test_an_index_is_left_to_the_next_process_which_reads_only_what_is_new(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = Team(place)
    for number in range(400):
        team.git("commit", "-q", "--allow-empty", "-m", f"chore: {number}")
    with Repository(str(place)) as repository:
        HistoryIndex(repository).read_up_to(team.head())
    monkeypatch.setattr(index, "log_parents_first", refuse)
    monkeypatch.setattr(index, "main_line", refuse)
    team.git("commit", "-q", "--amend", "--allow-empty", "-m", "chore: otherwise")
    with Repository(str(place)) as repository:
        found = HistoryIndex(repository)
        found.read_up_to(team.head())
        assert found.position_of(team.head()) == 399
        found.read_up_to(team.git("rev-parse", "HEAD~200"))
        assert found.position_of(team.head()) == -1


def refuse(*_: object) -> Any:
    raise AssertionError("it was read anew")


def test_answers_stay_those_of_one_commit_while_another_process_goes_on_and_rewrites(
    place: Path,
) -> None:
    team, path = Team(place), f"{FOLDER}/decisions.jsonl"
    made = [
        team.user_commits(f"feat(01-01): T{at} x", str(team.file(path, f"{at}"))) for at in range(4)
    ]
    with Repository(str(place)) as one, Repository(str(place)) as other:
        reader, writer = HistoryIndex(one), HistoryIndex(other)
        reader.read_up_to(made[-1])
        for keeps in (False, True):
            before = answers(reader, made)
            if keeps:
                reader.keep()
            team.git("reset", "-q", "--hard", made[1])
            again = team.user_commits(f"feat(01-01): T9 {keeps}", str(team.file(path, f"{keeps}")))
            writer.read_up_to(again)
            assert answers(reader, made) == before
            assert writer.position_of(made[-1]) == -1 and writer.last_change(path).oid == again


def test_what_others_have_beyond_a_branch_is_read_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each step: all that is beyond, nothing that nobody has, and the old is not read again."""
    team, rng = Team(tmp_path / "work tree"), random.Random(FIRST)
    team.git("commit", "-q", "--allow-empty", "-m", "chore: begin")
    for name in OTHERS:
        team.git("branch", name)
    told: list[int] = []

    def log(*asked: Any) -> list[history.LoggedCommit]:
        found = list(history.log_parents_first(*asked))
        told.append(len(found))
        return found

    monkeypatch.setattr(index, "log_parents_first", log)
    with Repository(str(team.root)) as repository:
        lines = HistoryIndex(repository)
        for step in range(40):
            branch = rng.choice(["main", *OTHERS])
            team.git("checkout", "-q", branch)
            was_rewritten = branch != "main" and rng.random() < 0.2
            if was_rewritten:
                team.git("reset", "-q", "--hard", "main")
            if branch == "main" and rng.random() < 0.5:
                team.git("merge", "-q", "--no-edit", rng.choice(OTHERS))
            for number in range(rng.randrange(1, 4)):
                team.file(f"of_{branch}", f"{step} {number}")
                team.user_commits(f"feat(01-01): T{step} of {branch}", f"of_{branch}")
            main, *tips = (team.git("rev-parse", each) for each in ("main", *OTHERS))
            told.clear()

            lines.read_beyond(main, sorted(tips), goes_on=step > 0)

            every = team.git("rev-list", "--all", "--reflog").split()
            read = {oid for oid in every if lines.commit(oid)}
            assert read >= set(team.git("rev-list", *tips, f"^{main}").split()), f"{FIRST} {step}"
            assert read <= set(team.git("rev-list", *tips, main).split()), f"{FIRST} {step}"
            assert was_rewritten or told[0] <= 3, f"{FIRST} {step}"


def test_a_branch_that_was_rewritten_and_pruned_is_read_anew(tmp_path: Path) -> None:
    team = Team(tmp_path / "work tree")
    main = team.user_commits("chore: begin", str(team.file("a", "")))
    before = team.user_commits("feat(01-01): T1 before", str(team.file("a", "before")))
    with Repository(str(team.root)) as repository:
        lines = HistoryIndex(repository)
        lines.read_beyond(main, [before], goes_on=False)
        team.git("reset", "-q", "--hard", main)
        after = team.user_commits("feat(01-01): T1 after", str(team.file("a", "after")))
        team.git("reflog", "expire", "--expire=now", "--all")
        team.git("prune", "--expire=now")
        lines.read_beyond(main, [after], goes_on=True)

        assert lines.of_task("01-01/T1") == after


@pytest.mark.parametrize(
    "error", [YoloError(Reason.GIT_TIMEOUT), OSError("no descriptor")], ids=str
)
def test_a_history_that_git_told_in_part_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    team = Team(tmp_path / "work tree")
    made = [
        team.user_commits(f"feat(01-01): T{at}", str(team.file("a", f"{at}"))) for at in range(3)
    ]

    def fail_half_way(*asked: Any) -> Iterator[history.LoggedCommit]:
        yield next(history.log_parents_first(*asked))
        raise error

    with Repository(str(team.root)) as repository:
        found = HistoryIndex(repository)
        found.read_up_to(made[0])
        with monkeypatch.context() as patched:
            patched.setattr(index, "log_of_line", lambda *_: None)
            patched.setattr(index, "log_parents_first", fail_half_way)
            with pytest.raises(type(error)):
                found.read_up_to(made[2])
        found.read_up_to(made[2])

        assert [found.position_of(each) for each in made] == [0, 1, 2]


def test_a_shallow_clone_that_was_deepened_is_read_anew(tmp_path: Path) -> None:
    team = Team(tmp_path / "whole")
    made = [
        team.user_commits(f"feat(01-01): T{at} x", str(team.file("a", f"{at}"))) for at in range(5)
    ]
    clone = tmp_path / "clone"
    git = ["git", "-C", str(clone)]
    subprocess.run(["git", "clone", "-q", "--depth=2", f"file://{team.root}", clone], check=True)
    with Repository(str(clone)) as repository:
        found = HistoryIndex(repository)
        found.read_up_to(made[-1])
        assert [found.position_of(each) for each in made] == [-1, -1, -1, 0, 1]
        subprocess.run([*git, "fetch", "-q", "--unshallow"], check=True)
        again = HistoryIndex(repository)
        again.read_up_to(made[-1])
        assert [again.position_of(each) for each in made] == [0, 1, 2, 3, 4]
        assert again.of_task("01-01/T1") == made[1]


VERIFICATION = "phases/01-auth/verification.jsonl"


def test_the_warnings_of_an_artifact_are_not_those_of_the_state_that_moves_along(
    place: Path,
) -> None:
    def commit(message: str, *paths: str) -> None:
        for path in paths:
            file = place / ".yolo-planning" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(message)
        subprocess.run(["git", "-C", place, "add", "-A"], check=True)
        words = ["git", "-C", place, "commit", "-q", "-m", message]
        subprocess.run(words, check=True)

    trailers = "Yolo-Artifact: verification\nYolo-Warnings: 1"
    commit(f"docs(01): verification results\n\n{trailers}", VERIFICATION, "state.json")
    with Repository(str(place)) as repository:
        index = HistoryIndex(repository)
        index.read_up_to(str(repository.head().tip))
        assert index.warnings() == {f".yolo-planning/{VERIFICATION}": 1}
