"""Whatever keeps a file uncommitted, a hook unrun or a person unasked for longer than two rescans is
told by every surface until it ends, and what is no trouble is told by none.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.e2e.daemon import until
from tests.health.ground import Ground
from tests.health.troubles import NO_TROUBLES, TROUBLES, Trouble, question
from yolo_fs.core.reasons import Reason
from yolo_fs.daemon.follower import Follower
from yolo_fs.git.repository import Repository
from yolo_fs.observer.waiting import InboxWatcher

DESKTOP = "started from the desktop"
"""Doctor's hint that a host may not find the command; true of this machine, whatever the team does."""


def surfaces_that_tell(ground: Ground, words: str) -> set[str]:
    """Return the surfaces that show one of some words, or the sentence of a reason among them."""
    wanted = words.split("|")
    wanted += [reason.sentence for word in wanted if (reason := Reason.known(word))]
    return {name for name, ask in ground.surfaces.items() if any(map(ask().__contains__, wanted))}


def wait_until_none(left: Callable[[], set[str]], what: str) -> None:
    """Wait until no surface is left."""
    last: set[str] = set()

    def is_none() -> bool:
        nonlocal last
        last = left()
        return not last

    try:
        until(is_none, what)
    except AssertionError as error:
        raise AssertionError(f"{what}: {', '.join(sorted(last))}") from error


@pytest.mark.sampled(8)
@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_a_trouble_is_told_by_every_surface_until_it_ends(ground: Ground, trouble: Trouble) -> None:
    with trouble(ground) as words:
        all_surfaces = {*ground.surfaces}
        wait_until_none(
            lambda: all_surfaces - surfaces_that_tell(ground, words), f"silent on {words}"
        )
    wait_until_none(lambda: surfaces_that_tell(ground, words), f"still tell {words}")


def test_what_the_daemon_tells_of_files_ends_with_its_own_next_report(ground: Ground) -> None:
    """The observer looks once a rescan, and would name for that long what is committed by now."""
    with TROUBLES["torn JSON"](ground), Repository(str(ground.root)) as repository:
        silent = {"status line"}
        wait_until_none(lambda: silent - surfaces_that_tell(ground, "json_parse_error"), "silent")
        waiting = InboxWatcher(repository, Follower(repository, lambda *_: None, lambda _: None))
        waiting.look_at_health()
        assert waiting.standing == []


def test_a_question_to_the_user_is_told_wherever_people_and_agents_look(ground: Ground) -> None:
    asked = {*ground.surfaces} - {"doctor"}  # a team that waits for an answer is not ill
    with question(ground) as words:
        wait_until_none(lambda: asked - surfaces_that_tell(ground, words), f"silent on {words}")
    wait_until_none(lambda: surfaces_that_tell(ground, words), f"still tell {words}")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("trouble", NO_TROUBLES.values(), ids=NO_TROUBLES)
def test_what_is_no_trouble_is_told_by_none(ground: Ground, trouble: Trouble) -> None:
    with trouble(ground):
        written = ground.writes(7)
        ground.daemon.wait_committed([written])
        ground.wait_for_rescans(2)
        status = json.loads(ground.told("status", "--json"))
        assert status["findings"] == status["data"]["health"] == status["data"]["inbox"] == []
        of_doctor = json.loads(ground.told("doctor", "--json"))["findings"]
        assert [each for each in of_doctor if DESKTOP not in each["message"]] == []
        assert "stop:" not in ground.told("resume", "--no-write")
        assert "in the way" not in ground.surfaces["status line"]()
