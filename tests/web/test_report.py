"""The report is one file that needs nothing, says the same twice, and tells no secret and no markup from outside."""

from __future__ import annotations

import json
import re
import shutil
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.security.test_disguises import planted
from tests.support.teams import Team
from tests.web.situations import shipped
from yolo_fs.cli.main import run
from yolo_fs.core.credentials import RULES, find_hits, is_secret
from yolo_fs.core.reasons import Exit
from yolo_fs.git.repository import Repository
from yolo_fs.snapshots.record import record_phase
from yolo_fs.snapshots.review import PhaseReview, ReviewSection
from yolo_fs.web import report
from yolo_fs.web.report import write_markdown, write_report
from yolo_fs.workspace.settings import load

PHASE = ".yolo-planning/phases/01-auth"


class Reader(HTMLParser):
    """Collects what a file could do."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open = 0
        self.feed(text)

    def handle_starttag(self, name: str, given: list[tuple[str, str | None]]) -> None:
        self.tags.add(name)
        self.attributes |= {key for key, _ in given}


def written(team: Team, name: str, *words: str) -> bytes:
    path = team.root.parent / name
    assert run(["report", "-q", "-C", str(team.root), "-o", str(path), *words]) == 0
    return path.read_bytes()


def test_the_same_history_gives_the_same_bytes(team: Team) -> None:
    first, again = written(team, "a.html"), written(team, "b.html")
    assert first == again
    assert len(first) < 5_000_000
    old = team.git("log", "--format=%H", "--", PHASE).split()[1]
    assert written(team, "c.html", "--at", old) == written(
        team, "d.html", "--at", old, "--phase", "1"
    )
    assert written(team, "e.html", "--phase", "2") != first


def test_it_needs_no_network_and_runs_no_script(team: Team) -> None:
    text = written(team, "a.html").decode()
    found = Reader(text)
    assert not found.tags & {
        "script",
        "iframe",
        "object",
        "embed",
        "link",
        "img",
        "form",
        "base",
        "a",
    }
    assert not {
        name
        for name in found.attributes
        if name.startswith("on") or name in ("src", "href", "style")
    }
    assert "default-src 'none'" in unescape(text)
    assert set(re.findall(r"https?://[^\s\"'<]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in text
    assert "url(" not in text


def test_every_colour_of_the_lanes_is_explained_below_them(team: Team) -> None:
    text = written(team, "a.html", "--phase", "1").decode()
    card = text.partition("<h2>Lanes</h2>")[2].partition("</section>")[0]
    lanes, _, legend = card.partition("</svg>")
    kinds = set(re.findall(r'class="(?:bar|mark) (\w+)"', lanes))
    assert kinds, "something is drawn"
    for kind in kinds:
        name = "opened" if kind == "gate" else kind
        assert f'{name}"></span>' in legend, kind


def test_it_has_every_artifact_version_gate_and_commit(team: Team) -> None:
    text = written(team, "a.html", "--phase", "1").decode()
    for path in team.git("ls-tree", "-r", "--name-only", "HEAD", PHASE).split():
        assert path.rpartition("/")[2] in text
    for commit in team.git("log", "--format=%H", "--", PHASE).split():
        assert commit[:12] in text
    assert "integration: closed, missing" in text


def test_a_text_is_shown_while_there_is_room_and_else_its_size(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = written(team, "a.html", "--phase", "1").decode()
    assert '<ol class="lines">' in whole and "characters left out" not in whole
    monkeypatch.setattr(report, "TEXT_BYTES", 0)
    short = written(team, "b.html", "--phase", "1").decode()
    assert '<ol class="lines">' not in short
    assert short.count("characters left out") == whole.count('<ol class="lines">')


def test_a_reviewer_reads_first_what_was_for_what_and_what_was_built(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    html = written(team, "a.html", "--phase", "1").decode()
    text = written(team, "a.md", "--phase", "1", "--format", "markdown").decode()
    commit = team.git("log", "--format=%H", "--grep", "T1 load the keys").split()[0]
    titles = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert titles[:2] == ["Goal", "What was built"]
    capsys.readouterr()
    words = ["report", "--phase", "1", "--format", "markdown", "-C", str(team.root)]
    assert run(words) == 0
    assert capsys.readouterr().out.strip() == text.strip()
    for kept in ("README.md", ".yolo-planning/ROADMAP.md"):
        assert run([*words, "-o", str(team.root / kept)]) == Exit.USAGE
    assert run(["report", "-C", str(team.root)]) == Exit.USAGE
    assert "Issue access tokens that every service can verify" in text
    assert f"{commit[:12]} feat(01-01): T1 load the keys (1 file, +1 −0)" in text
    assert html.index(commit[:12]) < html.index("Lanes")
    assert "Issue access tokens that every service can verify" in html


def test_no_text_of_the_repository_is_markup_in_markdown(tmp_path: Path) -> None:
    team = Team(tmp_path / "repo")
    team.begin()
    said = (
        "<img src=x onerror=alert(1)> [x](javascript:y) @everyone # h `c` AKIA" + "Q3EGRT7YHN2WXK5P"
    )
    line = {"ts": "2026-02-20T10:00:00Z", "agent": "lead", "dec": said, "reason": "r"}
    team.file(".yolo-planning/decisions.jsonl", json.dumps(line) + "\n")
    team.artifact("decisions.jsonl", json.dumps(line) + "\n")
    team.user_commits("docs(01): decisions", ".yolo-planning")
    text = written(team, "a.md", "--format", "markdown").decode()
    assert "## Decisions" in text
    assert "Q3EGRT7YHN2WXK5P" not in text
    for sign in "<>[]`@#":
        body = "".join(one[2:] for one in text.splitlines() if one.startswith("- "))
        assert f"\\{sign}" in body
        assert sign not in body.replace(f"\\{sign}", "")


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("src/a_b.ts: 01-02 (1.5 s) + more", "src/a_b.ts: 01-02 (1.5 s) + more"),
        ("- x", "\\- x"),
        ("12. x", "12\\. x"),
        ("see https://x.y or www.x.y", "see https\\://x.y or www\\.x.y"),
        (
            "ask @x in #12 or x@y.z",
            "ask \\@&ZeroWidthSpace;x in \\#&ZeroWidthSpace;12 or x\\@&ZeroWidthSpace;y.z",
        ),
        (":boom: _x_ $y$", "\\:boom: \\_x\\_ \\$y\\$"),
    ],
)
def test_only_what_markdown_would_read_is_escaped(said: str, written: str) -> None:
    review = PhaseReview("01-auth", "complete", (ReviewSection("Goal", (said,)),))
    assert write_markdown(review).decode().splitlines()[-1] == f"- {written}"


def test_a_phase_that_shipped_is_reported_with_its_commits_and_who_signed(tmp_path: Path) -> None:
    root = shipped()
    try:
        out = tmp_path / "a.md"
        words = ["report", "-C", str(root), "--format", "markdown", "-o", str(out)]
        assert run(words) == 0
        page = tmp_path / "a.html"
        assert run(["report", "-C", str(root), "-o", str(page)]) == 0
    finally:
        shutil.rmtree(root)
    sections = {part.partition("\n")[0]: part for part in out.read_text().split("\n## ")}
    assert sections["What was built"].count(" feat(01-0") == 3
    assert "backend: PASS, 0 findings" in sections["Security"]
    assert ": chore(state): phase 1 complete" in sections["Signed"]
    assert not re.search(r'class="cell ready"', page.read_text())


def test_no_secret_that_was_committed_past_us_is_in_it(tmp_path: Path) -> None:
    team = Team(tmp_path / "repo")
    team.begin()
    secrets = [rule.example.decode() for rule in RULES]
    assert len(secrets) >= 25
    for number, secret in enumerate(secrets):
        escaped = secret.replace("\n", "\\n")
        team.artifact(
            "critique.jsonl", f'{{"id":"C{number}","q":"<img src=x onerror=alert(1)> {escaped}"}}\n'
        )
        team.user_commits(f"docs(01): {escaped[:60]} {escaped}", f"{PHASE}/critique.jsonl")
    text = written(team, "a.html").decode()
    assert [secret for secret in secrets if secret in text] == []
    assert not is_secret(text)
    assert "<img" not in text


def test_no_disguise_brings_a_credential_into_it(tmp_path: Path) -> None:
    team = Team(tmp_path / "repo")
    team.begin()
    trials = [(secret, text) for secret, text in planted() if is_secret(text)]
    assert len({secret for secret, _ in trials}) >= 40
    by_secret: dict[str, list[str]] = {}
    for secret, text in trials:
        by_secret.setdefault(secret, []).append(text)
    names = [f"01-{number:02}.plan.jsonl" for number in range(1, len(by_secret) + 1)]
    for name, texts in zip(names, by_secret.values(), strict=True):
        team.artifact(name, "\n".join(texts) + "\n")
    team.user_commits("docs(01): plans past the hooks", *(f"{PHASE}/{name}" for name in names))
    for _, text in trials[:6]:
        team.git("commit", "-q", "--allow-empty", "-m", f"docs(01): {text}")
    written_bytes = written(team, "a.html")
    read = unescape(written_bytes.decode())
    assert all(name in read for name in names)
    values = {
        hit.value for secret, text in trials for _, hit in find_hits(f"{secret}\n{text}".encode())
    }
    assert [value for value in values if value in written_bytes or value in read.encode()] == []
    assert not is_secret(read)
    print(f"{len(trials)} planted; {len(written_bytes):,} bytes")


def test_what_cannot_be_reported_is_told(
    team: Team, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "a.html")
    assert run(["report", "-C", str(team.root), "-o", out, "--phase", "77"]) == Exit.USAGE
    assert "01-auth" in capsys.readouterr().err
    assert run(["report", "-C", str(team.root), "-o", out, "--at", "nowhere"]) == Exit.USAGE
    empty = Team(tmp_path / "empty")
    empty.file("README.md", "x")
    empty.user_commits("chore: begin", "README.md")
    assert run(["report", "-C", str(empty.root), "-o", out]) == Exit.NOT_HERE
    assert not Path(out).exists()


def test_a_text_becomes_markup_only_as_text(team: Team) -> None:
    hostile = '<b>\u202e" title="x"><script>'
    review = PhaseReview(hostile, hostile, (ReviewSection(hostile, (hostile,)),))
    with Repository(str(team.root)) as repository:
        head = str(repository.head().tip)
        record = record_phase(repository, load(repository.root), head, "1", ())
    text = write_report(record, review).decode()
    assert not Reader(text).tags & {"b", "script"}
    assert text.count("&lt;b&gt;\\u202e&#34; title=&#34;x&#34;&gt;&lt;script&gt;") == 3
