"""A file that nobody reads, for its name only nearly is an artifact's, or for it lies elsewhere, is
told wherever agents look.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Sequence

import pytest

from tests.e2e.daemon import Daemon, Event
from tests.e2e.repo import Repo
from yolo_fs.artifacts.classify import classify

FOLDER = ".yolo-planning/phases/01-auth"
WRONG, RIGHT = f"{FOLDER}/critiques.jsonl", f"{FOLDER}/critique.jsonl"
LINE = '{"id":"C1","cat":"gap","sev":"major","q":"Why?","ctx":"x","sug":"y","st":"open"}\n'


@pytest.mark.parametrize("is_there_first", [True, False])
def test_the_daemon_tells_of_it_once_and_goes_on_when_it_is_renamed(
    repo: Repo, start: Callable[[Repo], Daemon], is_there_first: bool
) -> None:
    (repo.root / FOLDER).mkdir(parents=True)
    if is_there_first:
        repo.file(WRONG, LINE)
    daemon = start(repo)
    if not is_there_first:
        repo.file(WRONG, LINE)
    daemon.mailbox.wait(lambda events: bool(of(events, WRONG)))
    (repo.root / WRONG).rename(repo.root / RIGHT)
    daemon.mailbox.wait(
        lambda events: any(each["event"] == "artifact.committed" for each in of(events, RIGHT))
    )
    [refused] = of(daemon.mailbox.events, WRONG)
    [finding] = refused["data"]["findings"]
    assert refused["event"] == "artifact.rejected"
    assert (finding["reason"], finding["expected"]) == ("unknown_name", RIGHT)
    assert repo.status()["counts"]["rejected"] == 0


def of(events: Sequence[Event], path: str) -> list[Event]:
    return [each for each in events if each.get("path") == path]


@pytest.mark.parametrize("words", [("status",), ("resume",), ("doctor",), ("explain", WRONG)])
def test_each_look_names_it_once_with_the_name_that_was_meant(
    repo: Repo, words: tuple[str, ...]
) -> None:
    repo.file(WRONG, LINE)
    done = repo.yolo_fs(*words, ok=(0, 1))
    said = (done.stdout + done.stderr).decode()
    assert f"expected {RIGHT}" in said
    assert said.count("Rename the file. If a file of that name exists, add the content") == 1


def test_a_document_in_the_place_of_an_artifact_is_explained_by_what_is_wrong_with_it(
    repo: Repo,
) -> None:
    repo.file(f"{FOLDER}/01-01-PLAN.md", "# The plan\n")
    done = repo.yolo_fs("explain", f"{FOLDER}/01-01-PLAN.md", ok=(1,))
    said = (done.stdout + done.stderr).decode()
    meant = f"{FOLDER}/01-01.plan.jsonl"
    assert f"a document replaces no artifact: nobody reads or commits it; expected {meant}" in said
    assert f"'yolo-fs schema example {meant}' prints one" in said


def test_a_document_without_a_number_was_meant_for_any_plan(repo: Repo) -> None:
    repo.file(f"{FOLDER}/plan.md", "# The plan\n")
    assert repo.status()["counts"]["rejected"] == 1
    repo.file(f"{FOLDER}/fe-01-03.plan.jsonl", "{}\n")
    assert {each["path"] for each in repo.status()["candidates"]} == {
        f"{FOLDER}/fe-01-03.plan.jsonl"
    }


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_document_beside_its_artifact_or_on_the_branch_is_its_authors_own(
    repo: Repo, is_committed: bool
) -> None:
    plan = f"{FOLDER}/01-01-PLAN.md"
    if is_committed:
        repo.commit_file(plan, "# The plan\n")
    else:
        repo.file(plan, "# The plan\n")
        repo.file(f"{FOLDER}/01-01.plan.jsonl", "{}\n")
    for verb in ("status", "resume", "validate", "doctor"):
        done = repo.yolo_fs(verb, ok=(0, 1))
        assert plan not in (done.stdout + done.stderr).decode(), verb


CREDENTIAL = "AKIA" + "Q3EGRT7YHN2WXK5P"


@pytest.mark.parametrize("path", [WRONG, f"{FOLDER}/research.md", RIGHT])
def test_a_credential_in_a_file_that_is_refused_is_told_and_waits_for_a_person(
    repo: Repo, path: str
) -> None:
    repo.file(path, f'{{"id":"C1","cat":"gap","q":"{CREDENTIAL}"}}\n')
    os.utime(repo.root / path, (1e9, 1e9))
    waits = json.loads(repo.yolo_fs("inbox", "--json", ok=(1,)).stdout)["data"]
    assert (waits[0]["kind"], waits[0]["id"]) == ("credential", path)
    for verb in ("status", "validate"):
        said = repo.yolo_fs(verb, ok=(0, 1))
        assert "no credential in a file" in (said.stdout + said.stderr).decode(), verb


ODD = {
    f"{FOLDER}/critiques.jsonl": "file",
    f"{FOLDER}/state.json": "file",
    f"{FOLDER}/reserch.jsonl": "link",
    f"{FOLDER}/research.jsonl": "link",
    f"{FOLDER}/gap.jsonl": "pipe",
    f"{FOLDER}/security-audit.jsonl": "pipe",
    f"{FOLDER}/verification.jsonl": "folder",
    f"{FOLDER}/test-plans.jsonl": "folder",
    f"{FOLDER}/plan.md": "file",
    ".yolo-planning/critique.jsonl": "file",
    ".yolo-planning/decisions.jsonl": "link",
    ".yolo-planning/test-plan.jsonl": "pipe",
    ".yolo-planning/ROADMAP.md": "folder",
}
"""What lies where an artifact must be, or under nearly its name → what it is."""


def make_odd(repo: Repo) -> None:
    for path, sort in ODD.items():
        full = repo.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        match sort:
            case "file":
                repo.file(path, LINE)
            case "link":
                full.symlink_to("/etc/hostname")
            case "pipe":
                os.mkfifo(full)
            case _:
                full.mkdir()


def test_every_look_names_the_same_files_that_nobody_reads(repo: Repo) -> None:
    make_odd(repo)
    told: dict[str, set[str]] = {}
    for verb in ("status", "resume", "validate", "doctor"):
        done = repo.yolo_fs(verb, ok=(0, 1))
        said = (done.stdout + done.stderr).decode()
        told[verb] = {path for path in ODD if re.search(rf"(?m)(?<!\S){re.escape(path)}:", said)}
    told["doctor"] |= {path for path in ODD if classify(path)}  # one line for all of a reason
    assert told == {key: {*ODD} for key in told}
    seen = repo.status()
    assert {each["path"] for each in seen["candidates"]} == {*ODD}
    assert seen["counts"]["rejected"] == len(ODD)


def test_doctor_names_twenty_misnamed_files_and_counts_the_others(repo: Repo) -> None:
    for number in range(25):
        folder = repo.root / f".yolo-planning/phases/{number:02}-part"
        folder.mkdir(parents=True)
        (folder / "critiques.jsonl").write_text("{}\n")
    told = repo.yolo_fs("doctor").stderr.decode().splitlines()
    named = [line for line in told if "unknown_name" in line]
    assert len(named) == 21
    assert named[-1] == "warning: unknown_name: and 5 more. 'yolo-fs validate' names each."


def test_what_lies_in_a_phase_is_counted_there_under_any_name(repo: Repo) -> None:
    make_odd(repo)
    said = repo.yolo_fs("status").stdout.decode()
    [of_phase] = re.findall(r"(?m)^01-auth +(?:- +){3}(\d+)$", said)
    [of_none] = re.findall(r"(?m)^\(no phase\) +(?:- +){3}(\d+)$", said)
    assert (int(of_phase), int(of_none)) == (9, 4)


def test_the_daemon_tells_each_of_them_once(repo: Repo, start: Callable[[Repo], Daemon]) -> None:
    make_odd(repo)
    start(repo).mailbox.wait(lambda events: {each.get("path") for each in events} >= {*ODD})
    told = json.loads(repo.yolo_fs("events", "--json", "--type", "artifact.rejected").stdout)
    assert sorted(each["subject"] for each in told["data"]) == sorted(ODD)


@pytest.mark.parametrize("verb", ["status", "resume", "validate"])
def test_the_name_and_the_content_are_told_in_one_turn(repo: Repo, verb: str) -> None:
    repo.file(WRONG, LINE.replace('"major"', '"grave"'))
    done = repo.yolo_fs(verb, "--json", ok=(0, 1))
    assert f'"{RIGHT}"' in done.stdout.decode() or f"expected {RIGHT}" in done.stdout.decode()
    told = repo.yolo_fs(verb, ok=(0, 1)).stdout.decode()
    assert "unknown_name" in told and ("grave" in told or "and 1 more (yolo-fs validate" in told)


def test_what_a_person_has_committed_under_such_a_name_is_no_refused_artifact(repo: Repo) -> None:
    repo.commit_file(WRONG, LINE)
    assert repo.status()["counts"]["rejected"] == 0


def test_an_artifact_outside_the_planning_tree_is_told_where_it_belongs(repo: Repo) -> None:
    (repo.root / FOLDER).mkdir(parents=True)
    for path in ("critique.jsonl", "docs/01-02.plan.jsonl"):
        repo.file(path, LINE)
        said = repo.yolo_fs("validate", path, ok=(0, 1)).stdout.decode()
        name = path.rpartition("/")[2]
        assert (
            f"expected .yolo-planning/phases/NN-SLUG/{name}. If the file is an artifact, move it"
            in said
        )
    repo.file("data/customers.jsonl", LINE)
    assert "move it there" not in repo.yolo_fs("validate", "data", ok=(0, 1)).stdout.decode()


def test_a_plan_outside_the_planning_tree_is_told_wherever_agents_look(repo: Repo) -> None:
    (repo.root / FOLDER).mkdir(parents=True)
    repo.commit_file("fixtures/01-04.plan.jsonl", LINE)
    repo.commit_file(".gitignore", "build/\n")
    others = ("build/01-05.plan.jsonl", "src/02-01.plan.jsonl", "src/critique.jsonl")
    told = ("01-01.plan.jsonl", "src/fe-01-02.summary.jsonl", "src/a/b/01-03.plan.jsonl")
    for path in (*others, *told):
        repo.file(path, LINE)
    for verb, named in (("status", told[:2]), ("resume", told[:2]), ("doctor", told)):
        done = repo.yolo_fs(verb, ok=(0, 1))
        said = (done.stdout + done.stderr).decode()
        for path in named:
            meant = f"{FOLDER}/{path.rpartition('/')[2]}"
            assert said.count(f"{path}: unknown_name") == said.count(f"expected {meant}") == 1, said
        assert said.count("outside .yolo-planning") == len(named), said
    for path in ("fixtures/01-04.plan.jsonl", *others, *told):
        call = {"tool_name": "Write", "tool_input": {"file_path": path, "content": LINE}}
        event = {"hook_event_name": "PostToolUse", "cwd": str(repo.root), **call}
        answer = repo.yolo_fs("hook", "post-tool-use", given=json.dumps(event).encode()).stdout
        assert (b"outside .yolo-planning" in answer) == (path in told), path


@pytest.mark.parametrize("holds", ["nothing", "a folder", "a file"])
def test_a_folder_in_the_place_of_an_artifact_is_told_until_it_is_gone(
    repo: Repo, start: Callable[[Repo], Daemon], holds: str
) -> None:
    folder = repo.root / RIGHT
    below = {"nothing": folder, "a folder": folder / "x", "a file": folder}[holds]
    below.mkdir(parents=True)
    if holds == "a file":
        (folder / "x.txt").write_text("x")
    daemon = start(repo)
    daemon.mailbox.wait(lambda events: bool(of(events, RIGHT)))
    for words in (["status"], ["resume"], ["validate", RIGHT]):
        done = repo.yolo_fs(*words, ok=(0, 1))
        assert "a folder is where a file must be" in (done.stdout + done.stderr).decode(), words
    shutil.rmtree(folder)
    repo.file(RIGHT, LINE)
    daemon.mailbox.wait(
        lambda events: any(each["event"] == "artifact.committed" for each in of(events, RIGHT))
    )
    assert repo.status()["counts"]["rejected"] == 0
