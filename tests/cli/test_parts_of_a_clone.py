"""What a shallow or partial clone does not have is said in one line, and is no fault."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.properties.histories import Ground
from tests.properties.rewritten import committed
from yolo_fs.cli.main import run
from yolo_fs.evidence.judged import came_later
from yolo_fs.evidence.plan_status import PlanStanding, plan_progress
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.loops.repairs import PassedAudit, passed_without_answer
from yolo_fs.protocol.departments import Dept
from yolo_fs.workspace.settings import load

FOLDER = ".yolo-planning/phases/01-login"
PLAN = (
    {
        "p": "01", "n": "01", "t": "Login", "w": 1, "d": [], "obj": "o",
        "mh": {"tr": ["x"], "ar": [{"p": "src/a.py", "pv": "s", "c": ""}], "kl": []},
    },
    {"id": "T1", "tp": "auto", "a": "do it", "f": ["src/a.py"], "v": "true", "done": "ok"},
)  # fmt: skip
COMMITS = 5


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def put(root: Path, name: str, *records: object) -> None:
    """Write an artifact, and let it be committed."""
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    (root / FOLDER / name).write_text("".join(json.dumps(each) + "\n" for each in records))
    assert run(["run", "--once", "-q", "-C", str(root)]) == 0


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    root = tmp_path / "origin"
    git(tmp_path, "init", "-q", "-b", "main", str(root))
    for key, value in (("user.name", "T"), ("user.email", "t@x"), ("uploadpack.allowFilter", "1")):
        git(root, "config", key, value)
    put(root, "01-01.plan.jsonl", {**PLAN[0], "obj": "first"}, PLAN[1])
    put(root, "01-01.plan.jsonl", *PLAN)
    (root / "src").mkdir()
    (root / "src/a.py").write_text("1\n")
    git(root, "add", "src")
    git(root, "commit", "-qm", "feat(01-01): T1 load")
    summary = {
        "p": "01", "n": "01", "t": "t", "s": "complete", "dt": "2026-02-19", "tc": 1, "tt": 1,
        "ch": [git(root, "rev-parse", "HEAD")], "fm": ["src/a.py"], "dv": [], "built": ["x"],
        "tst": "green_only", "sg": [],
    }  # fmt: skip
    put(root, "01-01.summary.jsonl", summary)
    git(root, "commit", "-q", "--allow-empty", "-m", "chore: after")
    assert int(git(root, "rev-list", "--count", "HEAD")) == COMMITS
    return root


def standing(root: Path) -> tuple[PlanStanding, tuple[str, ...]]:
    with Repository(str(root)) as repository:
        facts_reader = FactsReader(repository, load(repository.root))
        (facts,) = facts_reader.facts(repository.head().tip)
        (plan,) = plan_progress(facts)
    return plan.standing, plan.missing


def cloned(origin: Path, tmp_path: Path, how: str) -> Path:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", how, origin.as_uri(), str(clone))
    return clone


@pytest.mark.parametrize("depth", range(1, COMMITS + 1))
def test_a_shallow_clone_of_any_depth_calls_no_good_work_bad(
    origin: Path, tmp_path: Path, depth: int, capsys: pytest.CaptureFixture[str]
) -> None:
    clone = cloned(origin, tmp_path, f"--depth={depth}")
    assert standing(clone) == (PlanStanding.COMPLETE, ())
    assert run(["validate", "-C", str(clone)]) == 0
    capsys.readouterr()
    assert run(["verify", "-C", str(clone)]) == 0
    said = capsys.readouterr()
    ends_at_ours = depth in (2, 4)  # the summary, and the second plan
    assert said.out.count("--unshallow") == int(ends_at_ours) and not said.err
    is_cut = (clone / ".git/shallow").exists()
    for verb in ("resume", "status"):
        assert run([verb, "-C", str(clone)]) == 0
        assert capsys.readouterr().out.count("this clone is shallow") == int(is_cut), verb
    assert run(["status", "--json", "-C", str(clone)]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["shallow"] is is_cut


def test_a_clone_without_contents_calls_no_good_commit_bad(
    origin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clone = cloned(origin, tmp_path, "--filter=blob:none")
    assert standing(clone) == (PlanStanding.COMPLETE, ())
    capsys.readouterr()
    assert run(["verify", "-C", str(clone)]) == 0
    said = capsys.readouterr()
    assert said.out.count("1 of them are not whole") == 1 and not said.err
    for root, count in ((clone, 1), (origin, 0)):
        assert run(["status", "-C", str(root)]) == 0
        assert capsys.readouterr().out.count("this clone is partial") == count
        assert run(["status", "--json", "-C", str(root)]) == 0
        assert json.loads(capsys.readouterr().out)["data"]["partial"] is bool(count)


def test_a_clone_without_a_former_audit_asks_for_it_until_it_has_come(
    origin: Path, tmp_path: Path
) -> None:
    (passed,) = example("pass_without_findings")
    failed = {**passed, "r": "FAIL", "findings": 1, "critical": 1}
    put(origin, AUDIT, failed)
    put(origin, AUDIT, passed)
    clone = cloned(origin, tmp_path, "--filter=blob:none")
    with Repository(str(clone)) as repository:
        facts_reader = FactsReader(repository, load(repository.root))
        assert audit_of(facts_reader, repository) == PassedAudit("PASS", is_known=False)
        assert audit_of(facts_reader, repository) == PassedAudit("PASS", is_known=False)
        git(clone, "fetch", "-q", "--refetch", "--no-filter")
        assert audit_of(facts_reader, repository) == PassedAudit("PASS", is_known=True)


def audit_of(facts_reader: FactsReader, repository: Repository) -> PassedAudit | None:
    (facts,) = facts_reader.facts(repository.head().tip)
    return passed_without_answer(facts, Dept.BACKEND)


def test_a_clone_knows_that_a_merge_took_a_verdict_back_without_its_contents(
    origin: Path, tmp_path: Path
) -> None:
    (passed,) = example("pass_without_findings")
    put(origin, AUDIT, passed)
    git(origin, "switch", "-qc", "side")
    put(origin, AUDIT, {**passed, "dt": "2026-02-21"})
    git(origin, "switch", "-q", "main")
    git(origin, "merge", "-q", "-s", "ours", "-m", "Merge side", "side")
    clone = cloned(origin, tmp_path, "--filter=blob:none")
    assert reopened(clone) == reopened(origin) != []


def reopened(root: Path) -> list[str]:
    with Repository(str(root)) as repository:
        (facts,) = FactsReader(repository, load(repository.root)).facts(repository.head().tip)
        return list(came_later(facts, "security-audit", Dept.BACKEND))


AUDIT = "security-audit.jsonl"
EXAMPLES = Path(__file__).parents[2] / "fixtures/examples/artifacts"


def example(name: str) -> list[dict[str, Any]]:
    text = (EXAMPLES / f"security-audit/ok/{name}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_clone_without_trees_goes_on_and_tells_all_once_they_have_come(
    origin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clone = cloned(origin, tmp_path, "--filter=tree:0")
    assert standing(clone) == (PlanStanding.COMPLETE, ())
    capsys.readouterr()
    for words in (["run", "--once", "-q"], ["status"], ["verify"], ["resume"]):
        assert run([*words, "-C", str(clone)]) == 0, words
    said = capsys.readouterr()
    assert said.out.count("this clone is partial") == 2 and not said.err  # status and resume
    assert commits_of(clone) == {""}
    git(clone, "fetch", "-q", "--refetch", "--no-filter")
    assert commits_of(clone) == commits_of(origin) != {""}


def commits_of(root: Path) -> set[str]:
    """Return the commits that gave each artifact its content, as far as they are known."""
    with Repository(str(root)) as repository:
        (facts,) = FactsReader(repository, load(repository.root)).facts(repository.head().tip)
    return {one.commit for one in facts.committed}


@pytest.mark.parametrize("how", ["--filter=tree:0", "--filter=blob:none", "--depth=1"])
def test_a_report_of_a_clone_that_lacks_what_a_commit_changed_says_so(
    origin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    (origin / "src/a.py").write_text("2\n")
    git(origin, "commit", "-qam", "fix(01-01): T1 load them once")
    clone = cloned(origin, tmp_path, how)
    git(clone, "remote", "set-url", "origin", (tmp_path / "gone").as_uri())
    for root, size in ((origin, "1 file, +1 −1"), (clone, "this clone lacks what it changed")):
        capsys.readouterr()
        assert run(["report", "--format", "markdown", "--phase", "1", "-C", str(root)]) == 0
        (line,) = [
            line for line in capsys.readouterr().out.splitlines() if "T1 load them once" in line
        ]
        assert size in line


@pytest.mark.parametrize("words", [["squash", "1"], ["status", "--at", "HEAD~3"]], ids=" ".join)
def test_what_a_clone_without_trees_cannot_do_names_the_command_that_brings_them(
    origin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    clone = cloned(origin, tmp_path, "--filter=tree:0")
    assert run([*words, "-C", str(clone)]) != 0
    said = capsys.readouterr().err
    assert "object_missing" in said and "git fetch --refetch --no-filter" in said


def test_lost_records_are_held_in_a_clone_without_the_trees_of_those_who_wrote_them(
    origin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decision = {
        "ts": "2026-02-18T14:30:00Z", "agent": "architect", "task": "", "dec": "Use sessions",
        "reason": "Fewer parts", "alts": [],
    }  # fmt: skip
    put(origin, "decisions.jsonl", decision)
    clone = cloned(origin, tmp_path, "--filter=tree:0")
    log = clone / FOLDER / "decisions.jsonl"
    log.write_text(json.dumps({**decision, "dec": "Use tokens"}) + "\n")
    capsys.readouterr()
    assert run(["validate", "-C", str(clone), str(log)]) == 1
    assert "records_lost" in capsys.readouterr().out


def test_a_whole_clone_still_finds_a_commit_that_there_is_not(origin: Path, tmp_path: Path) -> None:
    clone, summary = tmp_path / "clone", "01-01.summary.jsonl"
    git(tmp_path, "clone", "-q", origin.as_uri(), str(clone))
    said = json.loads((clone / FOLDER / summary).read_text())
    (clone / FOLDER / summary).write_text(json.dumps({**said, "ch": ["a" * 40]}) + "\n")
    assert run(["validate", "-q", "-C", str(clone)]) == 1


def test_a_clone_that_ends_within_a_phase_says_so_and_signs_nothing_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ground = Ground((Dept.BACKEND,), is_one_number=False)
    whole = ground.whole(Random(0))[:-2]
    one = committed(tmp_path / "work", ground, whole, Random(7))
    config = one.root / ".yolo-planning/config.json"
    config.write_text(json.dumps({"security_audit": True}) + "\n")
    (one.root / ground.source(Dept.BACKEND)).write_text("later\n")
    git(one.root, "add", "-A")
    git(one.root, "commit", "-q", "-m", "fix(01-01): T1 what nobody has judged")

    def said(root: Path, *words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = run([*words, "-C", str(root)])
        told = capsys.readouterr()
        return code, told.out + told.err

    clone = cloned(one.root, tmp_path, "--depth=1")
    for words in (
        ("gate", "check", "integration"),
        ("gate", "why", "integration"),
        ("gate", "list"),
        ("gate", "wait", "integration", "--timeout", "0"),
        ("workflow", "next"),
        ("workflow", "show"),
        ("workflow", "check", "qa"),
        ("phase", "sign-off", "--dry-run"),
    ):
        assert "--unshallow" in said(clone, *words)[1], words
        assert "--unshallow" not in said(one.root, *words)[1], words
    assert said(clone, "phase", "sign-off", "1")[0] == 1
    git(clone, "fetch", "-q", "--unshallow")
    code, told = said(clone, "gate", "check", "integration")
    assert (code, "--unshallow" in told) == (1, False)
