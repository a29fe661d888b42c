"""The generated histories of a phase as commits of git, and what teams do to such a history."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import IO, Any, NamedTuple

from tests.properties.histories import SHIP, Event, Ground, commit_of
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.phase.acts import acts_of
from yolo_fs.phase.phase import Phase
from yolo_fs.workspace.settings import load

PLANNING = ".yolo-planning"
FOLDER = f"{PLANNING}/phases/01-auth"
EXAMPLES = Path(__file__).parents[2] / "fixtures/examples/artifacts"
GOES_ON = Event("state.json", ({"st": "planning", "ph": 2},))
"""The team is at the next phase."""
_TASK = {"tp": "auto", "v": "true", "done": "Green"}
_BEGAN_S = 1_771_500_000
_WHOLE: Mapping[str, str] = {
    "plan": "plan/ok/enriched.jsonl",
    "summary": "summary/ok/complete.jsonl",
    "code-review": "code-review/ok/approved_without_findings.jsonl",
    "verification": "verification/ok/pass_with_warning.jsonl",
    "qa-code": "qa-code/ok/pass_without_findings.jsonl",
    "security-audit": "security-audit/ok/pass_without_findings.jsonl",
    "integration-gate-result": "integration-gate-result/ok/pass.jsonl",
    "owner-signoff": "owner-signoff/ok/ship.jsonl",
    "test-plan": "test-plan/ok/one_plan.jsonl",
    "test-results": "test-results/ok/green.jsonl",
    "critique": "critique/ok/addressed_by_the_architect.jsonl",
    "research": "research/ok/findings.jsonl",
    "decisions": "decisions/ok/accepts_a_plan.jsonl",
    "docs": "docs/ok/api_and_changelog.jsonl",
    "design-handoff": "design-handoff/ok/component_by_component.jsonl",
    "component-specs": "component-specs/ok/login_form.jsonl",
    "design-tokens": "design-tokens/ok/form_feedback.jsonl",
    "api-contracts": "api-contracts/ok/endpoint_by_endpoint.jsonl",
    "dept-handoff": "dept-handoff/ok/design_to_frontend.jsonl",
}
"""Kind → the example whose first record has what an event does not say."""


def git(root: Path, *words: str, check: bool = True) -> str:
    done = subprocess.run(["git", *words], cwd=root, check=check, capture_output=True, text=True)
    return done.stdout.strip()


class Real(NamedTuple):
    """A history in git, on `main`, above the branch `begin`; `aside` has another commit above it."""

    root: Path
    ground: Ground
    events: tuple[Event, ...]
    commits: tuple[str, ...]
    """One for each event."""

    @property
    def made(self) -> Iterator[tuple[str, Event]]:
        """Commit and event, in their order."""
        return zip(self.commits, self.events, strict=True)

    def phase(self, commit: str = "main", root: Path | None = None) -> Phase:
        with Repository(str(root or self.root)) as repository:
            facts_reader = FactsReader(repository, load(repository.root))
            oid = git(root or self.root, "rev-parse", commit)
            (phase,) = facts_reader.phases(oid, self.ground.options)
        return phase


def standing_of(phase: Phase) -> dict[str, str]:
    """Return how each step and plan stands."""
    found = {one.step.key: str(one.standing) for one in phase.progress.steps}
    for each in phase.progress.departments:
        name = each.department.value
        found |= {f"{name} {one.step.key}": str(one.standing) for one in each.steps}
        found |= {f"{name} plan {one.id}": str(one.standing) for one in each.plans}
    return found


def done_in(phase: Phase) -> frozenset[str]:
    """Return the steps and plans that nobody has to work on."""
    found = standing_of(phase).items()
    return frozenset(name for name, standing in found if standing in ("complete", "skipped"))


def turn_of(phase: Phase) -> tuple[str, str] | None:
    """Return who is asked for what first."""
    acts = [] if phase.is_complete else acts_of(phase)
    return (acts[0].agent, acts[0].turn.step) if acts else None


def text_of(event: Event, position: int, made: Mapping[str, str]) -> str:
    """Return the content of a commit, which no other has; `made`: department → its last commit of
    source.
    """
    if event.plan:
        return f"export const made = {position}\n"
    if event.name == "ROADMAP.md":
        return f"# Roadmap\n\n- [x] Phase 1: auth\n\nEdition {position}\n"
    if event.name == "state.json":
        known = json.loads((EXAMPLES / "state/ok/complete.json").read_text())
        return json.dumps(known | event.lines[0] | {"started": _day(position)}) + "\n"
    if event.name.endswith(".toon"):
        known = (EXAMPLES / "architecture/ok/backend.toon").read_text()
        return known.replace("goal: ", f"goal: {position} ")
    return "".join(json.dumps(line) + "\n" for line in _records(event, position, made))


def _records(event: Event, position: int, made: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    kind = event.name.removesuffix(".jsonl").rpartition(".")[2]
    kind = next(each for each in (kind, kind.partition("-")[2]) if each in _WHOLE)
    rest = json.loads((EXAMPLES / _WHOLE[kind]).read_text().splitlines()[0])
    for at, line in enumerate(event.lines):
        said = {**(_TASK if kind == "plan" and at else rest), **line}
        if "dt" in said:
            said["dt"] = _day(position)
        if kind == "plan" and not at:
            said |= {"fm": [], "obj": f"Login {position}"}
        elif kind == "summary":
            said |= {"p": "01", "n": event.name.removesuffix(".summary.jsonl")[-2:]}
            if line["ch"] == [commit_of(event.department)] and event.department in made:
                said["ch"] = [made[event.department]]
        elif kind == "dept-handoff":
            said["artifacts"] = ["design-tokens.jsonl", "component-specs.jsonl"]
        elif kind == "verification":
            is_good = line["r"] == "PASS"
            said |= {"tier": "standard", "ps": int(is_good), "fl": int(not is_good), "tt": 1}
        yield said
        if kind == "verification":
            check = {"c": "It answers", "ev": "tests", "cat": "must_have"}
            yield {**check, "r": "pass" if is_good else "fail"}


def _day(position: int) -> str:
    return (date(2026, 1, 1) + timedelta(days=position)).isoformat()


def subject_of(event: Event) -> str:
    if event.plan:
        return f"feat({event.plan}): T1 do {event.department}"
    if event == GOES_ON:
        return "docs(02): critique and gap analysis"
    if event.name == "state.json":
        return "chore(state): phase 1 complete"
    if event.name == "ROADMAP.md":
        return "chore(state): ROADMAP"
    return f"docs(01): {event.name.partition('.')[0]}"


def path_of(event: Event) -> str:
    if event.plan:
        return event.name
    return f"{PLANNING if event.name in SHIP else FOLDER}/{event.name}"


def committed(root: Path, ground: Ground, events: Sequence[Event], clock: Random) -> Real:
    """Make each event a commit, by clocks that nobody can rely on."""
    root.mkdir()
    git(root, "init", "-q", "-b", "main", ".")
    for key, value in (("user.name", "T"), ("user.email", "t@x"), ("uploadpack.allowFilter", "1")):
        git(root, "config", key, value)
    made: dict[str, str] = {}
    commits = []
    with _importing(root) as (into, out):
        _commit(into, 1, "chore: begin", "README.md", "shop\n", _BEGAN_S)
        for position, event in enumerate(events):
            at_s = _BEGAN_S + clock.randint(-100_000, 100_000)
            text = text_of(event, position, made)
            _commit(into, position + 2, subject_of(event), path_of(event), text, at_s)
            into.write(f"get-mark :{position + 2}\n".encode())
            into.flush()
            commits.append(out.readline().decode().strip())
            if event.plan and not ground.is_disguised(event):
                made[event.department] = commits[-1]
    git(root, "reset", "-q", "--hard", "main")
    git(root, "branch", FIRST, f"{commits[0]}^")
    aside = git(root, "commit-tree", f"{FIRST}^{{tree}}", "-p", FIRST, "-m", "chore: aside")
    git(root, "branch", "aside", aside)
    return Real(root, ground, tuple(events), tuple(commits))


@contextlib.contextmanager
def _importing(root: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    with subprocess.Popen(
        ["git", "fast-import", "--quiet", "--force"],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin and process.stdout
        yield process.stdin, process.stdout
        process.stdin.close()
        assert process.wait() == 0


def _commit(into: IO[bytes], mark: int, subject: str, path: str, text: str, at_s: int) -> None:
    body = text.encode()
    into.write(
        f"commit refs/heads/main\nmark :{mark}\ncommitter T <t@x> {at_s} +0000\n"
        f"data {len(subject)}\n{subject}\nM 100644 inline {path}\ndata {len(body)}\n".encode()
    )
    into.write(body + b"\n")


FIRST = "begin"
"""The commit below the history."""
Way = Callable[[Real, Random], str]
"""Does to a history what teams do, and returns the branch that it is on then."""


def rebased(real: Real, _: Random) -> str:
    git(real.root, "checkout", "-q", "-B", "rebased", "main")
    git(real.root, "rebase", "-q", "aside")
    return "rebased"


def cherry_picked(real: Real, _: Random) -> str:
    git(real.root, "checkout", "-q", "-B", "picked", "aside")
    git(real.root, "cherry-pick", f"{FIRST}..main")
    return "picked"


def amended(real: Real, chance: Random) -> str:
    """One commit gets another name, and all that came after it."""
    some = chance.choice(real.commits)
    git(real.root, "checkout", "-q", "-B", "amended", some)
    git(real.root, "commit", "-q", "--amend", "--no-edit", "--date=2020-01-01T00:00:00")
    git(real.root, "cherry-pick", "--allow-empty", f"{some}..main", check=some != real.commits[-1])
    return "amended"


def autosquashed(real: Real, chance: Random) -> str:
    """What a plan left out goes into the commit that did it."""
    work = [oid for oid, event in real.made if event.plan]
    git(real.root, "checkout", "-q", "-B", "autosquashed", "main")
    (real.root / "left out.ts").write_text("export {}\n")
    git(real.root, "add", "left out.ts")
    git(real.root, "commit", "-q", f"--fixup={chance.choice(work)}")
    git(real.root, "-c", "sequence.editor=:", "rebase", "-q", "-i", "--autosquash", FIRST)
    return "autosquashed"


def prefixed(real: Real, chance: Random) -> str:
    """A hook puts a ticket before each subject."""
    ticket = chance.choice(("[JIRA-12] ", "JIRA-12 ", "JIRA-12: ", "#12 "))
    return replayed(real, "prefixed", lambda subject: ticket + subject)


def replayed(real: Real, branch: str, said: Callable[[str], str]) -> str:
    """Make the same commits with other subjects."""
    below = git(real.root, "rev-parse", FIRST)
    for oid, event in real.made:
        words = "-p", below, "-m", said(subject_of(event))
        below = git(real.root, "commit-tree", f"{oid}^{{tree}}", *words)
    git(real.root, "branch", "-f", branch, below)
    return branch


def merged_as_it_is(real: Real, chance: Random) -> str:
    """The branch comes by a merge, as of a pull request; the other side has gone on, or not."""
    below = chance.choice((FIRST, "aside"))
    words = "-p", below, "-p", "main", "-m", "Merge pull request #12"
    made = git(real.root, "commit-tree", "main^{tree}", *words)
    git(real.root, "branch", "-f", "pulled", made)
    return "pulled"


def merged_in_parts(real: Real, chance: Random) -> str:
    """The branch comes by two merges, and the second one is merged once more."""
    half = chance.choice(real.commits[:-1])
    words = "-p", "aside", "-p", half, "-m", "Merge pull request #12"
    first = git(real.root, "commit-tree", f"{half}^{{tree}}", *words)
    words = "-p", first, "-p", "main", "-m", "Merge pull request #13"
    second = git(real.root, "commit-tree", "main^{tree}", *words)
    words = "-p", FIRST, "-p", second, "-m", "Merge branch develop"
    made = git(real.root, "commit-tree", "main^{tree}", *words)
    git(real.root, "branch", "-f", "parts", made)
    return "parts"


def squashed(real: Real, _: Random) -> str:
    return _one_commit(real, "squashed", FIRST, "main")


def squashed_twice(real: Real, chance: Random) -> str:
    """Two branches, one after the other, each became one commit."""
    half = chance.choice(real.commits[:-1])
    return _one_commit(real, "twice", _one_commit(real, "once", FIRST, half), "main")


def _one_commit(real: Real, branch: str, below: str, tip: str) -> str:
    words = "-p", below, "-m", "feat(app): login (#12)"
    git(real.root, "branch", "-f", branch, git(real.root, "commit-tree", f"{tip}^{{tree}}", *words))
    return branch


def merged(real: Real, _: Random) -> str:
    """Each department works in a clone of its own. What they share comes before, or after; so does
    source that belongs to no plan, which all of them have to review.
    """
    owned = {real.ground.source(each) for each in real.ground.departments}
    places = [f"{oid}:{path_of(event)}" for oid, event in real.made]
    blobs = git(real.root, "rev-parse", *places).split()
    by_line: dict[str, list[Change]] = {}
    for blob, event in zip(blobs, real.events, strict=True):
        is_shared = not event.department or (event.plan and event.name not in owned)
        line = "after" if event.name in LAST else "before" if is_shared else event.department
        by_line.setdefault(line, []).append((blob, event))
    before, after = by_line.pop("before", []), by_line.pop("after", [])
    with _importing(real.root) as (into, _):
        _branch(into, "merged", git(real.root, "rev-parse", FIRST))
        _replay(into, "merged", before)
        for line, changes in by_line.items():
            _branch(into, line, "refs/heads/merged")
            _replay(into, line, changes)
        for line, changes in by_line.items():
            _change(into, "merged", f"Merge {line}", f"merge refs/heads/{line}\n", changes)
        _replay(into, "merged", after)
    return "merged"


def merged_again(real: Real, chance: Random) -> str:
    """The merges come by a merge of their own."""
    tip = merged(real, chance)
    words = ("-p", FIRST, "-p", tip, "-m", "Merge branch merged")
    git(
        real.root, "branch", "-f", "again", git(real.root, "commit-tree", f"{tip}^{{tree}}", *words)
    )
    return "again"


def merge_and_revert(real: Real, chance: Random) -> None:
    """Make the branches `before`, where the first part of a history is, `side`, where a merge has
    brought the rest, `back`, where that is reverted, and `again`, where its revert is.
    """
    half = chance.choice(real.commits[:-1])
    before = _commit_tree(real, "before", half, "chore: elsewhere", half)
    merge = _commit_tree(real, "side", "main", "Merge branch 'side'", before, "main")
    said = f"This reverts commit {merge}, reversing\nchanges made to {before}."
    back = _commit_tree(real, "back", half, f"Revert \"Merge branch 'side'\"\n\n{said}", merge)
    said = f"This reverts commit {back}."
    _commit_tree(real, "again", "main", f"Reapply \"Merge branch 'side'\"\n\n{said}", back)


def _commit_tree(real: Real, branch: str, tree: str, said: str, *parents: str) -> str:
    above = [word for parent in parents for word in ("-p", parent)]
    made = git(real.root, "commit-tree", f"{tree}^{{tree}}", *above, "-m", said)
    git(real.root, "branch", "-f", branch, made)
    return made


Change = tuple[str, Event]
"""The blob that an event made of its path."""


def _branch(into: IO[bytes], branch: str, at: str) -> None:
    into.write(f"reset refs/heads/{branch}\nfrom {at}\n\n".encode())


def _replay(into: IO[bytes], branch: str, changes: Sequence[Change]) -> None:
    for blob, event in changes:
        _change(into, branch, subject_of(event), "", [(blob, event)])


def _change(
    into: IO[bytes], branch: str, subject: str, parent: str, changes: Sequence[Change]
) -> None:
    head = f"commit refs/heads/{branch}\ncommitter T <t@x> {_BEGAN_S} +0000\n"
    made = "".join(f"M 100644 {blob} {path_of(event)}\n" for blob, event in changes)
    into.write(f"{head}data {len(subject)}\n{subject}\n{parent}{made}\n".encode())


LAST = (*SHIP, "integration-gate-result.jsonl", "owner-signoff.jsonl")
IN_ORDER: tuple[Way, ...] = (
    rebased,
    cherry_picked,
    amended,
    autosquashed,
    prefixed,
    merged_as_it_is,
    merged_in_parts,
)
"""What leaves each commit its place."""
SQUASHED: tuple[Way, ...] = (squashed, squashed_twice)
"""What makes several commits one: nobody can tell their order."""
MERGED: tuple[Way, ...] = (merged, merged_again)
"""What puts the commits of one line before those of another."""
