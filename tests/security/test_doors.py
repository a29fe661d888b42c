"""Whatever is hostile in a repository, no door of the program runs it, writes outside, breaks, or hangs.

A sample of doors, another with each run, is gone through in a few repositories that hold all hostile things there are;
with `YOLO_ALL=1` every door in every way, and with `YOLO_SECURITY=1` so with each group of things in a repository of
its own. That each door there is has a way through it is asked in all of them.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
from starlette.routing import Route

from tests.security import doors as known
from tests.security.doors import PHASE, Door, every_door, rows_of, uncovered
from tests.security.passage import Fault, Passage, Way, ended
from tests.security.place import ArtifactPath
from tests.security.things import GROUPS, Thing, own_names
from tests.support.sample import ALL, sample_of
from yolo_fs.cli import gate, main
from yolo_fs.mcp import server
from yolo_fs.mcp.server import Server
from yolo_fs.protocol.hooks import HOSTS
from yolo_fs.web.server import BoardSite

TOGETHER: Mapping[str, Sequence[str]] = {
    "a repository at work": (
        "programs", "trees", "history", "kept", "team", "leases 0", "refs", "git settings",
    ),
    "files of ours": ("mixed files",),
    "files that never end": ("endless files",),
    "links": ("planted membership", "own links", "tree links", "folder links"),
}  # fmt: skip
"""Groups that stand in one repository when there is no time for each alone."""
IS_EACH_ALONE = bool(os.environ.get("YOLO_SECURITY"))
REPOSITORIES = {name: (name,) for name in GROUPS} if IS_EACH_ALONE else TOGETHER
ONE_OF = 20
"""Of each sort of doors, one of so many is gone through in each repository."""


@pytest.fixture(scope="module")
def all_doors(place: ArtifactPath) -> list[Door]:
    place.put_back("peace")  # a server opens no repository in which git would wait for ever
    return every_door(str(place.root))


def planted(place: ArtifactPath, groups: Sequence[str]) -> list[Thing]:
    """Let the place hold the things of some groups, and return them."""
    place.put_back("peace")
    made = []
    for group in groups:
        things = list(GROUPS[group](place))
        for thing in things:
            thing.plant(place)
        made += things
    place.silence()
    place.keep("hostile")
    return made


def ways_through(doors: Sequence[Door], rng: random.Random) -> list[Way]:
    """Return every way through every door; in the ordinary tier the shortest way through some of each sort."""
    if ALL:
        return [(door, row) for door in doors for row in rows_of(door)]
    chosen: list[Way] = []
    for sort in dict.fromkeys(door.sort for door in doors):
        open_ = [door for door in doors if door.sort == sort and rows_of(door)]
        chosen += [(door, rows_of(door)[0]) for door in sample_of(open_, ONE_OF, rng)]
    return chosen


# --- the list of doors is the program's ---


def test_each_door_has_a_way_through(all_doors: list[Door]) -> None:
    assert uncovered(all_doors) == []
    without = {door.name for door in all_doors if not rows_of(door)}
    assert without == {"git-hook", "compat", "demo"}, (
        "each is a door of its own below, or reads no repository"
    )
    counted = Counter(door.sort for door in all_doors)
    assert min(counted.values()) > 1, counted
    print(
        f"{len(all_doors)} doors, {sum(len(rows_of(door)) for door in all_doors)} ways: {dict(counted)}"
    )


@click.command("example")
def example() -> None:
    """Do nothing."""


def new_verb(patch: pytest.MonkeyPatch) -> None:
    class Row(main.Verb):
        def load(self) -> click.Command:
            return example

    patch.setattr(main, "VERBS", (*main.VERBS, Row("example", "x")))


def new_verb_of_a_group(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(gate.gate.commands, "example", example)


def new_hidden_verb(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(gate.gate.commands, "example", click.Command("example", hidden=True))


def new_option(patch: pytest.MonkeyPatch) -> None:
    command = gate.gate.commands["list"]
    patch.setattr(command, "params", [*command.params, click.Option(["--example"])])


def new_tool(patch: pytest.MonkeyPatch) -> None:
    begin = Server.__init__

    def more(self: Server, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        self._server.add_tool(lambda: "x", "example")

    patch.setattr(Server, "__init__", more)


def new_resource(patch: pytest.MonkeyPatch) -> None:
    begin = Server.__init__

    def more(self: Server, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        self._server.resource("yolo-fs://example/{path}", name="example")(lambda path: path)

    patch.setattr(Server, "__init__", more)


def new_prompt(patch: pytest.MonkeyPatch) -> None:
    known_ = server._commands()
    patch.setattr(server, "_commands", lambda: {**known_, "example": known_["go"]})


def new_address(patch: pytest.MonkeyPatch) -> None:
    before: Any = BoardSite.app

    def app(self: BoardSite) -> Any:
        made = before.fget(self)
        made.routes.append(Route("/api/example", lambda _: None))
        return made

    patch.setattr(BoardSite, "app", property(app))


def new_event(patch: pytest.MonkeyPatch) -> None:
    host = HOSTS[0]._replace(events={**HOSTS[0].events, "example": "Example"})
    patch.setattr(known, "HOSTS", (host, *HOSTS[1:]))


def new_host(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        known, "HOSTS", (*HOSTS, HOSTS[0]._replace(name="example", events={"more": "More"}))
    )


def new_git_hook(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        known, "GIT_HOOKS", (*known.GIT_HOOKS, known.GIT_HOOKS[0]._replace(name="example"))
    )


def new_script(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(known.SCRIPTS, "example", "example.run")  # type: ignore[arg-type]


def new_duty(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(known, "DUTIES", (*known.DUTIES, "example"))


@pytest.mark.parametrize(
    "add",
    [
        new_verb, new_verb_of_a_group, new_hidden_verb, new_option, new_tool, new_resource, new_prompt,
        new_address, new_event, new_host, new_git_hook, new_script, new_duty,
    ],
)  # fmt: skip
def test_a_door_that_is_new_is_not_covered(
    add: Callable[[pytest.MonkeyPatch], None], place: ArtifactPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(monkeypatch)
    assert len(uncovered(every_door(str(place.root)))) == 1


# --- each door does its work where nothing is hostile ---


@pytest.mark.timeout(1800 if ALL else 600)
def test_every_door_does_its_work_where_nothing_is_hostile(
    place: ArtifactPath, all_doors: list[Door], rng: random.Random
) -> None:
    place.put_back("peace")
    passage = Passage(place, "peace")
    faults = list(passage.through(ways_through(all_doors, rng)))
    assert faults == [], told(faults)
    asked_wrongly = [
        f"{door} {row.words}: {said[-300:]!r}"
        for door, row, code, said in passage.answers
        if code == 2
        and b"Usage: yolo-fs" in said
        and b"say --yes" not in said
        and door.name != "reference-transaction"
    ]
    assert asked_wrongly == []
    print(f"{passage.passed} ways")


# --- and is safe where something is ---


@pytest.mark.timeout(7200 if ALL else 600)
@pytest.mark.sampled(4)
@pytest.mark.parametrize("repository", list(REPOSITORIES))
def test_no_door_runs_writes_breaks_or_hangs(
    repository: str, place: ArtifactPath, all_doors: list[Door], rng: random.Random
) -> None:
    groups = REPOSITORIES[repository]
    things = planted(place, groups)
    passage = Passage(place, "hostile", is_joined="planted membership" not in groups)
    faults = list(passage.through(ways_through(all_doors, rng)))
    print(f"{passage.doors} of {len(all_doors)} doors × {len(things)} things = {passage.doors * len(things)}; {passage.passed} ways")  # fmt: skip
    assert faults == [], told(faults)


def told(faults: Sequence[Fault]) -> str:
    kinds = Counter(fault.what for fault in faults)
    return f"{dict(kinds)}\n" + "\n".join(str(fault) for fault in faults)


@pytest.mark.sampled(14)
@pytest.mark.parametrize("group", list(GROUPS))
def test_each_hostile_thing_does_harm_to_whoever_is_not_careful(
    group: str, place: ArtifactPath
) -> None:
    things = planted(place, (group,))
    try:
        assert [thing.name for thing in things if not thing.does_harm(place)] == []
    finally:
        place.silence()


def test_each_file_of_ours_that_any_door_leaves_is_made_hostile(
    place: ArtifactPath, all_doors: list[Door]
) -> None:
    place.put_back("peace")
    names = own_names(place)
    left = {path.name for path in left_by_verbs(place)}
    print(sorted(left))
    assert [name for name in left if not any(name.startswith(each) for each in names)] == []
    assert len(names) == len(set(names)) > 40


def left_by_verbs(place: ArtifactPath) -> Iterator[Path]:
    """Yield what lies in our folder after the verbs that write there."""
    from tests.security.place import asked

    for words in (
        ("hooks", "install"), ("setup", "claude"), ("start", "--wait"), ("status",), ("resume",), ("stop",),
        ("handoff", "check", "--override", "x"), ("agent", "list"), ("report", "-o", "report.html"),
    ):  # fmt: skip
        asked(place, *words)
    place.end_leftovers()
    yield from place.own.iterdir()


def test_the_daemon_that_is_gone_through_does_what_only_its_user_can_switch_on(
    place: ArtifactPath,
) -> None:
    place.put_back("peace")
    mendable = place.root / PHASE / "research.jsonl"
    mendable.write_bytes(mendable.read_bytes().replace(b"\n", b"\r\n"))
    os.utime(mendable, (1_700_000_000, 1_700_000_000))
    passage = Passage(place, "peace")
    with ended(passage, ["run", "--json"], "", False, "tests.security.every_duty:prepare") as run:
        code, out, _ = run
    assert code == 0
    assert b"artifact.autofixed" in out and b"verify_command.ended" in out
