"""Fifty attempts to open a gate by hand: none opens one, and each is named,
or taken away where the daemon itself wrote it once. See docs/dev/faults.md#f58.

One company, one daemon, and one process that waits at each gate of the phase that is attacked.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.artifacts import PLANNING
from tests.e2e.daemon import Daemon, until
from tests.e2e.gates import UX, Waiter, commit, evidence, make_company
from tests.e2e.repo import Repo, make_repo
from yolo_fs.cli.main import run

PHASE, OPEN_PHASE, ELSEWHERE = "01-auth", "02-page", "03-elsewhere"
GATES = ("ux-complete", "api-contract", "all-depts", "integration")
UX_DONE, UIUX_DONE, CONTRACT = (
    ".handoff-ux-complete",
    ".handoff-uiux-complete",
    ".handoff-api-contract",
)
BACKEND_DONE, FRONTEND_DONE = ".handoff-backend-complete", ".handoff-frontend-complete"
_SERIAL = itertools.count()


class Scene:
    """A phase whose design was ready once and is a draft again, beside one whose gates are open."""

    def __init__(self, repo: Repo, daemon: Daemon):
        self.repo, self.daemon = repo, daemon
        self.folder = repo.root / PLANNING / "phases" / PHASE
        self.open_folder = self.folder.parent / OPEN_PHASE
        commit(daemon, *(evidence(kind, OPEN_PHASE) for kind in (*UX, "api-contracts")))
        commit(daemon, *(evidence(kind, PHASE) for kind in (*UX, "api-contracts")))
        until(
            lambda: (self.folder / CONTRACT).exists() and (self.open_folder / CONTRACT).exists(),
            "they are open",
        )
        self.genuine = {path.name: path.read_bytes() for path in self.folder.glob(".handoff-*")}
        """Sentinels of the time when the gates were open."""
        commit(daemon, evidence("component-specs", PHASE, status="draft"))
        commit(daemon, evidence("api-contracts", PHASE, status="disputed"))
        until(lambda: self.told("gate.closed", PHASE) == 2, "they are closed again")
        for path in self.folder.glob(".handoff-*"):
            path.unlink(missing_ok=True)
        commit(daemon, *(evidence(kind, ELSEWHERE) for kind in UX))
        until(lambda: self.told("gate.opened", ELSEWHERE) == 1, "another one is open")
        self.waiters = [Waiter(repo, gate, phase=PHASE, timeout_s=3600) for gate in GATES]
        until(lambda: all(each.is_asleep() for each in self.waiters), "all of them sleep")

    def path(self, name: str) -> Path:
        return self.folder / name

    def edit_status(self, department: str, **values: Any) -> None:
        """Change a status file as an agent with an editor does."""
        path = self.folder / f".dept-status-{department}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    def told(self, event: str, phase: str) -> int:
        """Return how often the daemon has told something of the gates of a phase."""
        return sum(
            one["event"] == event and one["path"] == phase for one in self.daemon.mailbox.events
        )

    def let_daemon_judge(self) -> None:
        """Close and open a gate elsewhere, so that the daemon looks at every gate again."""
        for event, status in (("gate.closed", "draft"), ("gate.opened", "ready")):
            before = self.told(event, ELSEWHERE)
            one = evidence("component-specs", ELSEWHERE, status=status, desc=str(next(_SERIAL)))
            commit(self.daemon, one)
            until(lambda: self.told(event, ELSEWHERE) > before, f"{event} is told")  # noqa: B023

    @contextlib.contextmanager
    def put_back(self) -> Iterator[None]:
        """Restore the phase's coordination files afterwards."""
        before = {path: path.read_bytes() for path in self.folder.glob(".dept-status-*")}
        try:
            yield
        finally:
            for path in self.folder.glob(".[dh]*"):
                if not path.name.startswith(".dept-lock"):
                    shutil.rmtree(
                        path
                    ) if path.is_dir() and not path.is_symlink() else path.unlink()
            for path, data in before.items():
                path.write_bytes(data)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    place = tmp_path_factory.mktemp("forgeries")
    repo = make_repo(place / "repo", place / "home")
    make_company(repo)
    daemon = Daemon(repo, place / "daemon.log").start()
    made = Scene(repo, daemon)
    yield made
    for waiter in made.waiters:
        waiter.end()
    assert daemon.stop() == 0
    assert daemon.complaints() == ""


# --- the attempts ---

Forge = Callable[[Scene, Path], object]


class Attempt(NamedTuple):
    """One way to pretend that a gate is open."""

    said: str
    file: str
    """The file that has to be named."""
    forge: Forge
    stays: bool = True
    """Whether it lies there until somebody removes it; the daemon restores a status by itself."""
    was_true: bool = False
    """Whether it is what the daemon itself wrote once: then the daemon takes it away, unnamed."""


def bound(name: str, **more: Any) -> bytes:
    """Return a sentinel of the right shape."""
    return json.dumps({"sentinel": name, "phase": PHASE, "evidence": []} | more).encode() + b"\n"


def writes(data: bytes) -> Forge:
    return lambda _, path: path.write_bytes(data)


def touched_at(at_s: float) -> Forge:
    return lambda _, path: (path.touch(), os.utime(path, (at_s, at_s)))


def replayed(at_s: float | None = None, **more: Any) -> Forge:
    """Bring back the sentinel of the time when the gate was open, perhaps with the clock set back."""

    def forge(scene: Scene, path: Path) -> None:
        path.write_bytes(json.dumps(json.loads(scene.genuine[path.name]) | more).encode())
        if at_s is not None:
            os.utime(path, (at_s, at_s))

    return forge


def of_another_phase(**more: Any) -> Forge:
    def forge(scene: Scene, path: Path) -> None:
        found = json.loads((scene.open_folder / path.name).read_text())
        path.write_text(json.dumps(found | more))

    return forge


def moved_in(scene: Scene, path: Path) -> None:
    new = scene.repo.root / "new"
    new.write_bytes(scene.genuine[path.name])
    os.replace(new, path)


def links_to(target: str) -> Forge:
    return lambda scene, path: path.symlink_to(
        target.format(open=scene.open_folder, here=path, folder=scene.folder)
    )


def links_to_replay(scene: Scene, path: Path) -> None:
    kept = scene.repo.root / "kept"
    kept.write_bytes(scene.genuine[path.name])
    path.symlink_to(kept)


def hard_links(scene: Scene, path: Path) -> None:
    os.link(scene.open_folder / path.name, path)


def hard_links_replay(scene: Scene, path: Path) -> None:
    kept = scene.repo.root / "kept"
    kept.write_bytes(scene.genuine[path.name])
    os.link(kept, path)


def listens(_: Scene, path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the whole path may be too long for a socket
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def names_the_tip(scene: Scene, path: Path) -> None:
    tip = scene.repo.look("rev-parse", "HEAD").strip()
    proofs = [[f"{PLANNING}/phases/{PHASE}/{kind}.jsonl", tip] for kind in UX]
    path.write_bytes(bound(path.name, evidence=proofs))


def says(department: str, **values: Any) -> Forge:
    return lambda scene, _: scene.edit_status(department, **values)


def all_say_complete(scene: Scene, _: Path) -> None:
    for department in ("backend", "frontend", "uiux"):
        scene.edit_status(department, status="complete", step="signoff")
        scene.path(f".handoff-{department}-complete").touch()


def by_a_script(_: Scene, path: Path) -> None:
    """Write the eight keys of a script that knows nothing of numbers."""
    path.write_text(json.dumps({
        "dept": "backend", "status": "complete", "step": "signoff", "started_at": "2026-02-18T10:00:00Z",
        "updated_at": "2026-02-18T11:00:00Z", "plans_complete": 3, "plans_total": 3, "error": "",
    }))  # fmt: skip


def status_is_a_link(scene: Scene, path: Path) -> None:
    kept = scene.repo.root / "kept.json"
    kept.write_text(json.dumps(json.loads(path.read_text()) | {"status": "complete"}))
    path.unlink()
    path.symlink_to(kept)


def status_set_back(scene: Scene, path: Path) -> None:
    scene.edit_status("backend", status="complete", updated_at="1999-01-01T00:00:00Z")
    os.utime(path, (0, 0))


def status(department: str) -> str:
    return f".dept-status-{department}.json"


YEAR_2100 = 4_102_444_800.0
ATTEMPTS = (
    *(Attempt("touch", name, touched_at(1_700_000_000)) for name in (UX_DONE, UIUX_DONE, CONTRACT)),
    *(Attempt("touch", name, touched_at(1_700_000_000)) for name in (BACKEND_DONE, FRONTEND_DONE)),
    Attempt("touch a name that nobody knows", ".handoff-all-complete", touched_at(1_700_000_000)),
    Attempt("clock set back to 1970", UX_DONE, touched_at(0)),
    Attempt("clock set back before 1970", CONTRACT, touched_at(-86_400)),
    Attempt("clock set forward", UX_DONE, touched_at(YEAR_2100)),
    Attempt("clock set back for a replay", UX_DONE, replayed(1_000_000_000), was_true=True),
    Attempt("clock set forward for a replay", UX_DONE, replayed(YEAR_2100), was_true=True),
    Attempt("replay", UX_DONE, replayed(), was_true=True),
    Attempt("replay", UIUX_DONE, replayed(), was_true=True),
    Attempt("replay", CONTRACT, replayed(), was_true=True),
    Attempt("replay byte by byte, moved into place", UX_DONE, moved_in, was_true=True),
    Attempt("replay with less evidence", UX_DONE, replayed(evidence=[])),
    Attempt("replay through a link", UX_DONE, links_to_replay),
    Attempt("replay through a hard link", UX_DONE, hard_links_replay, was_true=True),
    Attempt("sentinel of another phase", UX_DONE, of_another_phase()),
    Attempt("sentinel of another phase", UIUX_DONE, of_another_phase()),
    Attempt("sentinel of another phase", CONTRACT, of_another_phase()),
    Attempt("sentinel of another phase under our name", UX_DONE, of_another_phase(phase=PHASE)),
    Attempt("sentinel of another phase under our name", CONTRACT, of_another_phase(phase=PHASE)),
    Attempt("sentinel of another phase by a link", UX_DONE, links_to("{open}/" + UX_DONE)),
    Attempt(
        "sentinel of another phase by a relative link",
        CONTRACT,
        links_to(f"../{OPEN_PHASE}/{CONTRACT}"),
    ),
    Attempt("sentinel of another phase by a hard link", UX_DONE, hard_links),
    Attempt("link to a file of the system", UX_DONE, links_to("/etc/hostname")),
    Attempt("link to nothing", UX_DONE, links_to("/nowhere")),
    Attempt("link to itself", UX_DONE, links_to("{here}")),
    Attempt("link to a directory", CONTRACT, links_to("{folder}")),
    Attempt("link to /dev/null", BACKEND_DONE, links_to("/dev/null")),
    Attempt("directory", UX_DONE, lambda _, path: path.mkdir()),
    Attempt("pipe", UX_DONE, lambda _, path: os.mkfifo(path)),
    Attempt("socket", UX_DONE, listens),
    Attempt("right shape without evidence", UX_DONE, writes(bound(UX_DONE))),
    Attempt("right shape without evidence", BACKEND_DONE, writes(bound(BACKEND_DONE))),
    Attempt("right shape with the tip as evidence", UX_DONE, names_the_tip),
    Attempt("no JSON", CONTRACT, writes(b"yes\n")),
    Attempt("a JSON list", CONTRACT, writes(b"[true]\n")),
    Attempt("a key twice", UX_DONE, writes(b'{"phase":"02-page","phase":"01-auth"}\n')),
    Attempt("larger than what is read", UX_DONE, writes(b" " * (9 << 20))),
    Attempt("status edited", status("backend"), says("backend", status="complete"), stays=False),
    Attempt("status edited", status("frontend"), says("frontend", status="complete"), stays=False),
    Attempt("status edited", status("uiux"), says("uiux", status="complete"), stays=False),
    Attempt("step edited", status("backend"), says("backend", step="signoff"), stays=False),
    Attempt(
        "plans edited",
        status("backend"),
        says("backend", plans_complete=9, plans_total=9),
        stays=False,
    ),
    Attempt("all say that they are complete", BACKEND_DONE, all_say_complete),
    Attempt("status by a script", status("backend"), by_a_script, stays=False),
    Attempt("status with its clock set back", status("backend"), status_set_back, stays=False),
    Attempt("status by a link", status("backend"), status_is_a_link, stays=False),
)


def test_there_are_fifty_attempts() -> None:
    assert len(ATTEMPTS) == 50


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda one: f"{one.said}: {one.file}")
def test_no_attempt_opens_a_gate_and_each_is_named_or_taken_away(
    scene: Scene, attempt: Attempt, capsys: pytest.CaptureFixture[str]
) -> None:
    with scene.put_back():
        before = listed_once_forged(scene, attempt, capsys)
        scene.let_daemon_judge()
        if attempt.was_true:
            until(lambda: not os.path.lexists(scene.path(attempt.file)), "it is taken away")
        after = listed(scene, capsys)
        lies_there = os.path.lexists(scene.path(attempt.file))
    assert (attempt.file in named(before)) is not attempt.was_true
    if attempt.stays:
        assert lies_there is (attempt.file in named(after)) is not attempt.was_true
    assert [gate["gate"] for gate in (*before["gates"], *after["gates"]) if gate["open"]] == []
    until(
        lambda: all(each.is_asleep() for each in scene.waiters),
        "whoever was woken to look sleeps again",
    )


def test_nothing_was_ever_told_to_be_open(scene: Scene) -> None:
    moves = [
        (one["event"], one["data"]["gate"])
        for one in scene.daemon.mailbox.events
        if one["path"] == PHASE
    ]
    opened = [gate for event, gate in moves if event == "gate.opened"]
    assert sorted(opened) == ["api-contract", "ux-complete"], "only once, when they were"


def test_without_a_forgery_nothing_is_named(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    assert named(listed(scene, capsys)) == set()


def listed_once_forged(
    scene: Scene, attempt: Attempt, capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    """Forge and ask: a daemon that is still at work on something else may put it right before we have asked."""
    for _ in range(10):
        attempt.forge(scene, scene.path(attempt.file))
        found = listed(scene, capsys)
        if attempt.was_true or attempt.file in named(found):
            break
    return found


def listed(scene: Scene, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["gate", "list", "--phase", PHASE, "--json", "-C", str(scene.repo.root)]) == 0
    return dict(json.loads(capsys.readouterr().out)["data"])


def named(found: dict[str, Any]) -> set[str]:
    """Return the files that `gate list` says nobody may trust."""
    return {*found["forged"], *(status(drift["where"]) for drift in found["drift"])}
