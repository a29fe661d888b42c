"""No spelling makes a denied path readable: `..`, doubled slashes, absolute paths, links, another case, bare names.

Both sides are asked: the rules (`may read`), and the reader that opens files. See
docs/dev/faults.md#f50 and #f51.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

from tests.properties.profile import tried
from tests.support.teams import Team
from yolo_fs.agents.access import Access
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.departments import WORKING_NAMES, Dept, Role
from yolo_fs.system.files import Content, read

PHASE = ".yolo-planning/phases/01-auth"
FILES = [
    ".yolo-planning/ROADMAP.md", ".yolo-planning/REQUIREMENTS.md", f"{PHASE}/architecture.toon", f"{PHASE}/critique.jsonl",
    f"{PHASE}/01-01.plan.jsonl", f"{PHASE}/code-review.jsonl", f"{PHASE}/01-CONTEXT-backend.md", f"{PHASE}/.ctx-lead.toon",
    f"{PHASE}/01-CONTEXT-uiux.md", f"{PHASE}/design-tokens.jsonl", f"{PHASE}/gaps.jsonl", "src/deep/a.ts",
]  # fmt: skip
OUTSIDE = "SECRET\n"


class World(NamedTuple):
    """A repository with links in it, and a folder beside it."""

    root: Path
    access: Access


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    top = tmp_path_factory.mktemp("isolation")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(top / "no config"))
        team = Team(top / "work tree")
        for name in FILES:
            team.file(name, f"{name}\n")
        (top / "outside").mkdir()
        (top / "outside/secret.md").write_text(OUTSIDE)
        for name, target in LINKS.items():
            (team.root / name).symlink_to(target)
        with Repository(str(team.root)) as repository:
            yield World(team.root, Access(repository))


LINKS = {
    "plans": ".yolo-planning", "src/up": "../.yolo-planning/phases", "src/deep/phase": f"../../{PHASE}", "loop": "loop",
    "out": "../outside", "self": ".", "roadmap.txt": ".yolo-planning/ROADMAP.md", "leak.md": "../outside/secret.md",
}  # fmt: skip
ROUNDABOUT = {
    ".yolo-planning": ["plans", "self/plans", "src/../plans", "./self/self/.yolo-planning"],
    ".yolo-planning/phases": ["src/up", "plans/phases"], PHASE: ["src/deep/phase", "src/up/01-auth"], "src": ["self/src"],
}  # fmt: skip
"""Folder → other ways to it."""
DETOURS = some.sampled_from(
    [
        "./",
        "self/",
        "src/../",
        ".yolo-planning/../",
        "src/deep/../../",
        ".//",
        "plans/phases/../../",
    ]
)


@some.composite
def spellings(draw: some.DrawFn, root: Path, path: str) -> str:
    """Return another way to spell a path of the repository."""
    folder = os.path.dirname(path)
    while folder and folder not in ROUNDABOUT:
        folder = os.path.dirname(folder)
    if folder and draw(some.booleans()):
        path = draw(some.sampled_from(ROUNDABOUT[folder])) + path.removeprefix(folder)
    path = "".join(draw(some.lists(DETOURS, max_size=3))) + path
    if draw(some.booleans()):
        path = path.replace("/", draw(some.sampled_from(["//", "/./", "/"])))
    return draw(
        some.sampled_from(
            [path, f"{root}/{path}", f"{root}/../{root.name}/{path}", f"/{root}//{path}"]
        )
    )


ACTORS = some.tuples(
    some.sampled_from(sorted(set(Role) - {Role.USER, Role.GO})),
    some.sampled_from([None, *WORKING_NAMES]),
)


def actor_of(world: World, name: Role, department: Dept | None) -> object:
    try:
        return world.access.actor(name.value, department)
    except Exception:
        return None


@tried(15)
@given(data=some.data(), who=ACTORS, path=some.sampled_from(FILES))
def test_every_spelling_of_a_path_gets_the_answer_of_the_path(
    world: World, data: some.DataObject, who: tuple[Role, Dept | None], path: str
) -> None:
    actor = actor_of(world, *who)
    assume(actor is not None)
    spelled = data.draw(spellings(world.root, path))
    plain = world.access.read(actor, path)  # type: ignore[arg-type]

    assert os.path.realpath(world.root / spelled) == str(world.root / path)
    assert world.access.read(actor, spelled).allowed == plain.allowed, spelled  # type: ignore[arg-type]
    assert world.access.write(actor, spelled).allowed == world.access.write(actor, path).allowed  # type: ignore[arg-type]


@tried(20)
@given(
    who=ACTORS,
    climb=some.integers(1, 6),
    detour=DETOURS,
    rest=some.sampled_from(["x", "etc/passwd", "outside/secret.md"]),
)
def test_no_spelling_leads_out_of_the_repository(
    world: World, who: tuple[Role, Dept | None], climb: int, detour: str, rest: str
) -> None:
    actor = actor_of(world, *who)
    assume(actor is not None)
    for path in (
        f"{detour}{'../' * climb}{rest}",
        f"/{rest}",
        f"{detour}out/secret.md",
        f"{detour}leak.md",
        f"{world.root}2/x",
    ):
        if os.path.realpath(world.root / path).startswith(f"{world.root}{os.sep}"):
            continue
        assert not world.access.read(actor, path).allowed, path  # type: ignore[arg-type]
        assert not world.access.write(actor, path).allowed, path  # type: ignore[arg-type]


@tried(15)
@given(
    data=some.data(),
    path=some.sampled_from([*FILES, "leak.md", "out/secret.md", "loop", "self/src/deep/a.ts"]),
)
def test_the_reader_opens_nothing_but_a_real_path_below_its_root(
    world: World, data: some.DataObject, path: str
) -> None:
    spelled = data.draw(some.just(path) | spellings(world.root, path))
    found = read(str(world.root), spelled, 1 << 20)

    if isinstance(found, Content):
        assert spelled in FILES
        assert found.data == f"{spelled}\n".encode() != OUTSIDE.encode()


@tried(20)
@given(
    text=some.text(max_size=30)
    | some.from_regex(r"(\.\./|\.yolo-planning/|phases/|/){1,5}[a-zA-Z.]{0,12}")
)
def test_no_text_makes_the_reader_raise_or_leave(world: World, text: str) -> None:
    found = read(str(world.root), text, 1 << 20)

    assert not isinstance(found, Content) or text in FILES


@tried(15)
@given(path=some.sampled_from(FILES[:-1]), chance=some.randoms(use_true_random=False))
def test_another_case_is_another_file_and_not_a_way_to_this_one(
    world: World, path: str, chance: object
) -> None:
    other = "".join(char.swapcase() if chance.random() < 0.5 else char for char in path)  # type: ignore[attr-defined]
    assume(other != path)

    assert not isinstance(read(str(world.root), other, 1 << 20), Content)
    assert not os.path.exists(world.root / other), "the file system of the tests tells cases apart"


def test_somebody_is_denied_something_and_somebody_is_not(world: World) -> None:
    dev, lead = world.access.actor("dev"), world.access.actor("lead")
    answers = {
        path: (world.access.read(dev, path).allowed, world.access.read(lead, path).allowed)
        for path in FILES
    }

    assert not answers[".yolo-planning/ROADMAP.md"][0]
    assert answers[f"{PHASE}/architecture.toon"][1]
    assert answers["src/deep/a.ts"] == (True, True)
