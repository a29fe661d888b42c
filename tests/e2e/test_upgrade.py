"""What an older version left is gone on with: nothing is lost, nothing is committed twice, nothing approved changes.

`tests/e2e/older_version.py` let three older versions work for a while and killed their daemons.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.artifacts import PLANNING
from tests.e2e.daemon import Daemon, until
from tests.e2e.older_version import PHASE, USERS_HOOK, USERS_SETTINGS, WORK
from tests.e2e.repo import Repo, environment

FIXTURES = Path(__file__).parents[2] / "fixtures/upgrade"
STATES = sorted(path.name.partition(".")[0] for path in FIXTURES.glob("*.tar.xz"))
APPROVED = (".claude/settings.json", ".codex/hooks.json")
PENDING = f"{PHASE}/01-03.plan.jsonl"
WRONG, TORN = f"{PHASE}/decisions.jsonl", f"{PHASE}/gaps.jsonl"


@pytest.fixture(params=STATES)
def left(request: pytest.FixtureRequest, tmp_path: Path) -> Repo:
    """Return a repository as an older version left it, as if it had always been here."""
    with tarfile.open(FIXTURES / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="tar")
    root = tmp_path / "app"
    for path in (root / ".git/yolo-fs").iterdir():
        if path.is_file() and str(WORK).encode() in (data := path.read_bytes()):
            path.write_bytes(data.replace(str(WORK).encode(), str(root).encode()))
    return Repo(root, environment(tmp_path / "home"))


def versions(repo: Repo) -> dict[str, list[str]]:
    """Return the contents that each artifact had on the branch, in their order."""
    found: dict[str, list[str]] = {}
    said = repo.look("log", "--reverse", "--format=", "--raw", "--no-abbrev", "--", PLANNING)
    for line in filter(None, said.splitlines()):
        meta, path = line.split("\t")
        found.setdefault(path, []).append(meta.split()[3])
    return found


def test_three_older_versions_are_kept() -> None:
    assert len(STATES) == 3


def test_its_daemon_goes_on_where_the_killed_one_was(
    left: Repo, start: Callable[..., Daemon]
) -> None:
    before, approved = versions(left), [(left.root / name).read_bytes() for name in APPROVED]

    daemon = start(left)
    until(lambda: PENDING in versions(left), "what was valid and in no commit is committed")  # fmt: skip
    after = versions(left)

    assert {path: after[path][: len(blobs)] for path, blobs in before.items()} == before
    assert all(len(blobs) == len(set(blobs)) for blobs in after.values())
    assert len(after[PENDING]) == 1
    assert left.standing(WRONG)[0] == "rejected"
    assert TORN not in after and WRONG not in after
    assert daemon.stop() == 0
    assert [(left.root / name).read_bytes() for name in APPROVED] == approved
    left.git("fsck", "--strict")


def test_what_was_claimed_and_what_is_open_is_still_known(left: Repo) -> None:
    claims = json.loads(left.yolo_fs("task", "claims", "--json").stdout)
    assert "dev-1" in json.dumps(claims) and "01-01/T1" in json.dumps(claims)
    assert b"ESC-01-01-T1" in left.yolo_fs("escalate", "list").stdout
    assert b"ESC-01-01-T1" in left.yolo_fs("resume").stdout
    told = [json.loads(line) for line in left.yolo_fs("events", "--json", ok=(0, 1)).stdout.splitlines()[:1]]  # fmt: skip
    assert told


def test_the_doctor_names_what_has_to_be_renewed_and_the_hooks_stop_nobody(left: Repo) -> None:
    said = left.yolo_fs("hooks", "doctor", ok=(0, 1))
    assert b"yolo-fs hooks install" in said.stdout + said.stderr
    left.yolo_fs("doctor", ok=(0, 1))

    left.commit_file("notes.md", "A note.\n", "wip")  # by the old hooks, whose program is gone
    left.yolo_fs("hooks", "install")
    left.commit_file("notes.md", "Another note.\n", "wip 2")
    left.yolo_fs("hooks", "uninstall")
    assert (left.root / ".git/hooks/pre-commit").read_text() == USERS_HOOK


def test_a_setup_that_is_renewed_and_removed_leaves_the_users_settings_to_the_byte(
    left: Repo,
) -> None:
    before = json.loads((left.root / APPROVED[0]).read_text())["hooks"]
    left.yolo_fs("setup", "claude")
    after = json.loads((left.root / APPROVED[0]).read_text())["hooks"]

    assert list(after)[: len(before)] == list(before)
    assert all(len(after[event]) == len(entries) for event, entries in before.items())
    for host in ("claude", "codex"):
        left.yolo_fs("setup", host, "--remove")
    assert (left.root / APPROVED[0]).read_text() == USERS_SETTINGS
    assert not (left.root / APPROVED[1]).exists()


def test_what_an_older_version_made_is_taken_away_with_the_rest(left: Repo) -> None:
    left.yolo_fs("uninstall", "--purge")
    assert not (left.root / ".git/yolo-fs").exists()
    assert not left.look("for-each-ref", "refs/yolo-fs", "refs/yolo").strip()
    assert (left.root / ".git/hooks/pre-commit").read_text() == USERS_HOOK
    assert (left.root / APPROVED[0]).read_text() == USERS_SETTINGS
    assert not (left.root / APPROVED[1]).exists()
