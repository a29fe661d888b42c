"""A link leads us nowhere: neither out of `.git/yolo-fs` nor out of the planning tree. See
docs/dev/faults.md#f45 and #f50.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.e2e.artifacts import PLANNING, artifact, mixed
from tests.e2e.repo import Repo
from tests.security.asking import ask
from tests.security.verbs import PHASE, of_hosts, questions

ALL = bool(os.environ.get("YOLO_SECURITY"))
OURS = (
    "boot.json", "daemon.log", "state.db", "index.db", "index.db.seal", "events.jsonl", "git-hook", "health.json", "hooks.json",
    "index-pending", "ref-locks", "setup-claude.json",
)  # fmt: skip
"""Below `.git/yolo-fs`; the first test of this file prints what is there. A lock that is a link is refused (F45)."""


@pytest.mark.parametrize("ending", [".tmp", ""] if ALL else [".tmp"])
def test_links_where_our_own_files_go_lead_nowhere(repo: Repo, ending: str) -> None:
    """A git directory that somebody else packed may hold whatever they like, links out of it as well."""
    victim = repo.root.parent / "victim"
    victim.write_text("precious\n")
    victim.chmod(0o640)
    own = repo.git_dir / "yolo-fs"
    own.mkdir(mode=0o700)
    for name in OURS:
        (own / f"{name}{ending}").symlink_to(victim)
    repo.write(artifact("plan", 0))
    ask(
        repo,
        questions(
            (
                "resume",
                "run --once",
                "hooks install",
                "setup claude",
                "doctor --fix",
                "status",
                "events",
            )
        ),
    )
    assert len(repo.subjects()) == 2
    assert (victim.read_text(), stat.S_IMODE(victim.stat().st_mode)) == ("precious\n", 0o640)


def test_files_behind_a_link_among_the_objects_stay_where_they_are(repo: Repo) -> None:
    """After a boot, empty objects are set aside: so are the empty files of a power loss, and no others."""
    outside = repo.root.parent / "outside"
    outside.mkdir()
    (outside / "__init__.py").touch()
    (repo.git_dir / "objects/zz").symlink_to(outside)
    ask(repo, questions(("run --once",)))
    assert os.listdir(outside) == ["__init__.py"]


def test_leaving_makes_nothing_in_what_a_link_in_the_place_of_our_folder_leads_to(
    repo: Repo,
) -> None:
    elsewhere = repo.root.parent / "elsewhere"
    elsewhere.mkdir()
    repo.write(artifact("plan", 0))
    ask(repo, questions(("run --once",)))  # there are packs of ours
    shutil.rmtree(repo.git_dir / "yolo-fs")
    (repo.git_dir / "yolo-fs").symlink_to(elsewhere)
    ask(repo, questions(("uninstall", "run --once", "status")))
    assert os.listdir(elsewhere) == []


@pytest.mark.parametrize("level", ["phase", "phases", "planning"] if ALL else ["phase"])
def test_a_phase_behind_a_link_is_written_to_by_nobody(repo: Repo, level: str) -> None:
    repo.file(
        f"{PLANNING}/config.json",
        json.dumps({"departments": {"frontend": True}, "department_workflow": "parallel"}),
    )
    repo.write(*mixed(2), artifact("critique", 0))
    ask(repo, questions(("run --once",)))
    place = (
        repo.root / {"phase": PHASE, "phases": f"{PLANNING}/phases", "planning": PLANNING}[level]
    )
    outside = repo.root.parent / "outside"
    place.rename(outside)
    place.symlink_to(outside)
    before = contents(outside)
    answers = ask(repo, questions((
        "run --once", "dept update backend --phase 1 --status running", "dept cleanup --phase 1 --reason failure",
        "workflow skip documentation --phase 1 --reason x", "escalate tick", "resume", "doctor --fix",
    )))  # fmt: skip
    assert contents(outside) == before
    assert b"not_regular" in answers[1].err


COMPAT = (
    "dept-cleanup --phase-dir {phase} --reason complete",
    "dept-status --dept backend --phase-dir {phase} --action write --status running --step planning",
    "generate-execution-state --phase-dir {phase} --phase 01 --force",
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("script", COMPAT)
@pytest.mark.parametrize("is_repository", [False, True])
def test_no_script_writes_into_a_phase_behind_a_link(
    repo: Repo, script: str, *, is_repository: bool
) -> None:
    repo.write(*mixed(2))
    (repo.root / PHASE / ".dept-lock-backend").touch()
    (repo.root / PHASE / ".dept-status-frontend.json").write_text("{}")
    outside = repo.root.parent / "outside"
    (repo.root / PHASE).rename(outside)
    (repo.root / PHASE).symlink_to(outside)
    if is_repository:  # the link then leads to a work tree of its own
        (outside / ".git").mkdir()
    before = contents(outside)
    for phase in (PHASE, f"{repo.root}/{PHASE}", f"{repo.root}/{PHASE}/"):
        (said,) = ask(repo, questions((f"compat {script.format(phase=phase)}",)))
        assert contents(outside) == before
        assert said.code != 0 and b"a link, or something that is not a folder" in said.err


def contents(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text() if path.is_file() else ""
        for path in sorted(root.rglob("*"))
    }


@pytest.mark.parametrize("target", ["/dev/null", "../../../precious"])
def test_a_link_where_git_has_its_exclusions_is_left_and_stops_no_commit(
    repo: Repo, target: str
) -> None:
    precious = repo.root.parent / "precious"
    precious.write_text("MINE\n")
    (repo.git_dir / "info").mkdir(exist_ok=True)
    exclude = repo.git_dir / "info/exclude"
    exclude.unlink(missing_ok=True)
    exclude.symlink_to(target)
    repo.write(*mixed(2))
    (said,) = ask(repo, questions(("run --once",)))
    assert len(repo.subjects()) == 1 + 2
    assert b"projection.failed" in said.err and b"info/exclude" in said.err
    assert (os.readlink(exclude), precious.read_text()) == (target, "MINE\n")


PIPES = (
    "config.json", ".active-agent", "state.json", ".execution-state.json", "HANDOFF.md", "ROADMAP.md",
    "phases/01-phase-1/.execution-state.json", "phases/01-phase-1/.dept-status-backend.json",
    "phases/01-phase-1/HANDOFF.md", "phases/01-phase-1/handoff.json", "phases/01-phase-1/decisions.jsonl",
)  # fmt: skip


def test_a_pipe_where_we_read_a_file_stops_nobody(repo: Repo) -> None:
    repo.write(*mixed(1))
    ask(repo, questions(("run --once",)))
    for name in PIPES:
        path = repo.root / PLANNING / name
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    hosts = of_hosts(str(repo.root), f"{PHASE}/decisions.jsonl")
    assert [said.code for said in ask(repo, [*questions(("run --once",)), hosts[1]])] == [78, 0]
    (repo.root / PLANNING / "config.json").unlink()
    asked = questions(("status", "validate", "run --once", "handoff check", "statusline"))
    assert len(ask(repo, asked + hosts)) == len(asked + hosts)
