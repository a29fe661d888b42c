"""What the home of the board says first, in each situation, at each width: what waits, why, and how far it is."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.company_runs import note_run_of_two_hosts
from tests.support.teams import Team
from tests.web.browser import launched
from tests.web.served import PATIENCE_S, Client, served
from tests.web.situations import QUESTION, shipped, team_in
from yolo_fs.cli.main import run

WIDTHS = (390, 1024, 1440, 2560)
CUT = """() => [...document.querySelectorAll('main *')].filter((one) => one.offsetParent && one.scrollWidth > one.clientWidth + 1
  && getComputedStyle(one).overflowX !== 'visible' && !one.matches('.hidden, input, select')).map((one) => one.className)"""
SIZES = """() => [...new Set([...document.querySelectorAll('body *')].filter((one) => one.offsetParent && one.textContent.trim())
  .map((one) => getComputedStyle(one).fontSize))]"""
BROKEN = """() => [...document.querySelectorAll('.grid .name')].filter((one) => {
  const range = document.createRange(), text = one.firstChild, cell = one.closest('th').getBoundingClientRect();
  return one.scrollWidth > cell.width + 1 || text.data.split(' ').some((word) => {
    const start = text.data.indexOf(word);
    range.setStart(text, start); range.setEnd(text, start + word.length);
    return range.getClientRects().length > 1;
  });
}).map((one) => one.textContent)"""
"""Names that are wider than their column, or have a word on two lines."""
Seen = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@contextmanager
def board_of(
    browser: Any, team: Team | Path, at: str = "", width: int = 1280
) -> Iterator[tuple[Any, Client]]:
    with served(team if isinstance(team, Path) else team.root) as client:
        context = browser.new_context(viewport={"width": width, "height": 900})
        page = context.new_page()
        page.set_default_timeout(1_000 * PATIENCE_S)
        page.goto(client.url + at)
        page.wait_for_selector(".view")
        yield page, client
        context.close()


@pytest.fixture(autouse=True)
def no_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))


def test_home_is_the_inbox_with_question_options_and_command(browser: Any, tmp_path: Path) -> None:
    team = team_in("question", tmp_path)
    with board_of(browser, team) as (page, client):
        first = page.locator(".view > :first-child")
        assert first.get_attribute("aria-label") == "Inbox"
        item = first.locator("[data-kind=escalation]")
        assert QUESTION in item.inner_text()
        assert item.locator(".options li").all_inner_texts() == ["Blue", "Red"]
        assert item.locator(".command code").inner_text() == "yolo-fs answer ESC-01-01-T1 CHOICE"
        cause = page.locator(".cause .sentence").inner_text()
        assert (
            cause == f"waiting for user, who answers ESC-01-01-T1 (Blue or Red): {QUESTION} "
            "This blocks 01-01/T1, backend"
        )
        shown = page.locator(".item .command code").all_inner_texts()
        assert shown == [one["command"] for one in client.api("board").data["inbox"]]


def test_the_credential_is_the_first_thing_on_the_page(browser: Any, tmp_path: Path) -> None:
    with board_of(browser, team_in("secret", tmp_path)) as (page, _):
        assert page.locator(".item").first.get_attribute("data-kind") == "credential"
        assert page.locator(".item").first.bounding_box()["y"] < 200


def test_the_root_cause_stands_in_one_sentence_above_the_steps(
    browser: Any, tmp_path: Path
) -> None:
    with board_of(browser, team_in("gate", tmp_path)) as (page, _):
        said = page.locator(".cause .sentence").inner_text()
        assert (
            said == "waiting for ux-architect, who does architecture; that blocks gate ux-complete "
            "→ backend, frontend"
        )
        command = page.locator(".cause .command code").inner_text()
        assert command == "yolo-fs workflow next --phase 1"
        steps = page.locator("[data-key=steps]").bounding_box()
        assert page.locator(".cause").bounding_box()["y"] < steps["y"]
        page.locator(".cause summary").click()
        assert "frontend" in page.locator(".tree").first.inner_text()
        assert page.locator(".graph").count() == 0


def test_what_waits_at_a_gate_is_not_called_ready(browser: Any, tmp_path: Path) -> None:
    with board_of(browser, team_in("gate", tmp_path)) as (page, _):
        standing = {
            one: page.get_attribute(f"[data-cell='{one}/architecture']", "data-standing")
            for one in ("backend", "frontend", "uiux")
        }
        assert standing == {"backend": "waiting", "frontend": "waiting", "uiux": "ready"}


def test_progress_is_told_in_steps_and_never_as_percent(browser: Any, tmp_path: Path) -> None:
    with board_of(browser, team_in("at-work", tmp_path)) as (page, client):
        pace = client.api("board").data["team"]["phases"][0]["pace"]
        assert page.inner_text(".number") == f"{pace['steps_done']}/{pace['steps']}"
        assert 0 < pace["steps_done"] < pace["steps"]
        assert page.inner_text(".paced").startswith("for ")
        assert "%" not in page.inner_text("body")


def test_a_committed_artifact_that_is_deleted_from_disk_is_told(
    browser: Any, tmp_path: Path
) -> None:
    team = team_in("at-work", tmp_path)
    gone = ".yolo-planning/phases/01-auth/critique.jsonl"
    (team.root / gone).unlink()
    with board_of(browser, team) as (page, _):
        told = page.locator("[data-key=deleted] [data-path]").all()
        assert [each.get_attribute("data-path") for each in told] == [gone]
        page.locator("nav a", has_text="Artifacts").click()
        row = page.locator(f"[data-key='{gone}']")
        row.wait_for()
        assert "deleted from the work tree" in row.inner_text()


def test_what_a_long_list_leaves_out_is_counted(browser: Any, tmp_path: Path) -> None:
    team = team_in("at-work", tmp_path)
    for number in range(3, 99):
        for prefix in ("", "fe-", "ux-"):
            team.artifact(f"{prefix}01-{number:02}.plan.jsonl", "{}\n")
    with board_of(browser, team) as (page, _):
        card = page.locator("[data-key=refused]")
        drawn = card.locator("ul > [data-path]").count()
        assert f"{3 * 96 - drawn} more are not shown here" in card.inner_text()


def test_what_is_empty_has_no_card_and_no_tab(browser: Any, tmp_path: Path) -> None:
    with board_of(browser, team_in("at-work", tmp_path)) as (page, _):
        assert page.locator("nav a").all_inner_texts() == ["Team", "Time", "Artifacts"]
        for key in ("escalations", "refused", "agents", "company"):
            assert page.locator(f"[data-key={key}]").count() == 0
    with board_of(browser, team_in("fresh", tmp_path / "fresh")) as (page, _):
        assert (
            page.locator("[data-key=none] .command code").inner_text() == "yolo-fs phase new SLUG"
        )
        assert page.locator("[data-key=events]").count() == 0
        assert not page.locator("#phase").is_visible()
        assert not page.locator("#when").is_visible()


def test_a_run_of_several_hosts_names_the_host_of_each_agent_and_has_a_bill_for_each(
    browser: Any, tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    team = team_in("at-work", tmp_path)
    note_run_of_two_hosts(team, sleeper.pid)
    with board_of(browser, team) as (page, _):
        card = page.locator("[data-key=company]")
        assert card.locator("h2").inner_text() == "At work: 1"
        assert card.locator("tbody td").first.inner_text() == "architect (codex)"
        card.locator("[data-key=bill] summary").click()
        rows = card.locator("[data-key=bill] table").last.locator("tbody tr").all_inner_texts()
        assert [row.split() for row in rows] == [
            ["claude", "1", "900", "–", "0.25", "USD"],
            ["codex", "1", "1,200", "–", "0.50", "USD"],
        ]


def test_plans_stand_one_below_the_other_whatever_their_sign_is(
    browser: Any, tmp_path: Path
) -> None:
    with board_of(browser, team_in("at-work", tmp_path)) as (page, _):
        signs = page.locator(".plans .sign").all_inner_texts()
        left = "all => all.map((one) => one.getBoundingClientRect().left)"
        assert len(set(signs)) > 1
        assert len(set(page.eval_on_selector_all(".plans summary .id", left))) == 1


def test_what_is_over_is_one_line_until_somebody_unfolds_it(browser: Any, tmp_path: Path) -> None:
    root = shipped()
    try:
        with board_of(browser, root) as (page, _):
            for key, said in (("gates", "4 of 4 open"), ("plans", "3 of 3 complete")):
                card = page.locator(f"[data-key={key}]")
                assert card.inner_text().split("\n")[-1] == said
                card.locator("summary").first.click()
                assert card.locator("li, .gate").first.is_visible()
    finally:
        shutil.rmtree(root)
    with board_of(browser, team_in("gate", tmp_path)) as (page, _):
        assert page.locator(".gate.closed").first.is_visible()


def test_a_moment_of_the_past_shows_nothing_that_came_later(browser: Any, tmp_path: Path) -> None:
    team = team_in("at-work", tmp_path)
    commits = team.git("log", "--format=%h", "--", ".yolo-planning/phases/01-auth").split()
    with board_of(browser, team) as (page, _):
        page.wait_for_selector("[data-seq]")
        first = team.git("log", "--format=%H", "--", ".yolo-planning/phases/01-auth").split()[-1]
        page.evaluate("at => { location.hash = `#/team?phase=01-auth&at=${at}` }", first)
        page.wait_for_selector("body[data-past=true] [data-key=events] li")
        shown = page.inner_text("[data-key=events]")
        assert page.locator("[data-key=needs]").count() == 0
    assert commits[-1][:7] in shown
    assert not [one for one in commits[:-1] if one[:7] in shown]


def test_an_event_tells_who_did_what_and_leads_there(browser: Any, tmp_path: Path) -> None:
    with board_of(browser, team_in("at-work", tmp_path)) as (page, _):
        row = page.locator("[data-seq]", has_text="architecture.toon")
        row.wait_for()
        assert "architect committed architecture.toon" in row.inner_text()
        row.locator("a").first.click()
        page.wait_for_selector(".text[aria-label$='architecture.toon']")


def test_a_record_is_a_card_in_the_words_of_its_schema(browser: Any, tmp_path: Path) -> None:
    at = "#/artifacts?path=.yolo-planning/phases/01-auth/critique.jsonl"
    with board_of(browser, team_in("at-work", tmp_path), at) as (page, _):
        page.wait_for_selector(".record")
        terms = page.locator(".record dt").all_inner_texts()
        keys = page.eval_on_selector_all(".record dt", "all => all.map((one) => one.title)")
    assert "sev" in keys
    assert terms != keys


def test_the_board_says_so_when_no_daemon_runs(browser: Any, tmp_path: Path) -> None:
    with board_of(browser, team_in("fresh", tmp_path)) as (page, _):
        page.wait_for_selector("#live[data-live=idle]")
        assert page.inner_text("#live-text") == "no daemon"


def test_health_is_in_the_inbox_with_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    team = team_in("at-work", tmp_path)
    team.file(".gitignore", ".yolo-planning/\n")
    with served(team.root) as client:
        board = client.api("board").data
    assert [one["reason"] for one in board["health"]] == ["gitignored"]
    assert [one["kind"] for one in board["inbox"]].count("health") == 1
    capsys.readouterr()
    assert run(["inbox", "-C", str(team.root)]) == 1
    assert "git check-ignore -v" in capsys.readouterr().out


def test_the_name_of_no_step_is_broken_or_covers_another(browser: Any, tmp_path: Path) -> None:
    with board_of(browser, team_in("at-work", tmp_path)) as (page, _):
        for width in (390, 1_024, 1_560):
            page.set_viewport_size({"width": width, "height": 900})
            page.reload()
            page.wait_for_selector(".grid .name")
            names = page.locator(".grid .name").all_inner_texts()
            assert {"implementation", "documentation", "integration gate"} <= {*names}, width
            wrapped = page.evaluate(BROKEN)
            assert wrapped == [], width


@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_of_few_cards_stands_in_the_middle(browser: Any, tmp_path: Path, width: int) -> None:
    with board_of(browser, team_in("fresh", tmp_path), width=width) as (page, _):
        cards = page.locator(".team > .card")
        assert cards.count() >= 2
        for box in (cards.nth(number).bounding_box() for number in range(cards.count())):
            left, right = box["x"], width - box["x"] - box["width"]
            assert abs(left - right) <= 1, f"{left} px are free to the left, {right} to the right"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_and_six_sizes_of_type_are_used(
    browser: Any, tmp_path: Path, width: int
) -> None:
    sizes = set()
    for situation in ("question", "gate", "secret"):
        with board_of(browser, team_in(situation, tmp_path / situation), width=width) as (page, _):
            page.wait_for_selector("[data-seq]")
            for view in ("team", "artifacts", "time"):
                page.evaluate("view => { location.hash = `#/${view}` }", view)
                page.wait_for_selector(f".view.{view}")
                if view == "time":
                    page.wait_for_selector("[data-plot=plans] svg")
                    page.wait_for_timeout(300)
                    plot, card = (
                        page.locator(each).first.bounding_box()["width"]
                        for each in ("[data-plot=plans] svg", "[data-plot=plans]")
                    )
                    assert plot > 0.9 * card, f"{situation}: a plot fills {plot} of {card}"
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                assert page.evaluate(CUT) == [], f"{situation}, {view}"
                sizes |= set(page.evaluate(SIZES))
    assert len(sizes) <= 6, sizes
