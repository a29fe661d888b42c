"""`schema` lists every kind, shows each as JSON Schema, and exports them all as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import BACKEND, THREE, Team
from yolo_fs.artifacts.catalogue import Kind, all_kinds
from yolo_fs.artifacts.table import ARTIFACTS
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit
from yolo_fs.schemas.messages.catalogue import MESSAGES


def schema(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = run(["schema", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_list_names_every_message_and_artifact(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = schema(capsys, "list")
    names = {row["kind"] for row in answer["data"]}
    assert code == Exit.DONE
    assert names >= {f"message/{name}" for name in MESSAGES} | {
        f"artifact/{row.kind}" for row in ARTIFACTS
    }
    assert names >= {"envelope/prd-report", "handoff/packet", "state/dept-status", "config"}
    assert len(names) == len(answer["data"]) == len(all_kinds())


@pytest.mark.parametrize("kind", all_kinds(), ids=lambda kind: kind.name)
def test_each_kind_of_the_list_has_an_example_that_is_valid(
    kind: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["schema", "example", kind.name]) == Exit.DONE
    path = (
        tmp_path / "HANDOFF.md" if kind.name.startswith("handoff/handoff-file") else tmp_path / "x"
    )
    path.write_text(capsys.readouterr().out)
    assert run(["validate", str(path), "--type", kind.name]) == Exit.DONE


def test_a_message_that_is_not_there_or_of_no_type_names_the_command_that_prints_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    team = Team(tmp_path / "repo")
    team.begin()
    at = ["-C", str(team.root)]
    assert run(["task", "complete", "01-01/T1", "--as", "dev-1", *at]) == Exit.UNREADABLE
    assert "'yolo-fs schema example message/TYPE' prints one" in capsys.readouterr().err
    (team.root / "x.json").write_text('{"type":"taskComplete"}\n')
    run(["message", "check", str(team.root / "x.json"), *at])
    assert "'yolo-fs schema example message/task_complete'" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "name", ["plan.jsonl", "01-02.plan.jsonl", "fe-critique.jsonl", "ROADMAP.md"]
)
def test_a_file_name_stands_for_its_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    team = Team(tmp_path / "repo")
    team.begin()
    (team.root / "x").write_text("{}\n")
    at = ["-C", str(team.root)]
    for words in (["schema", "show", name], ["schema", "example", name], ["explain", name]):
        assert run([*words, *at]) == Exit.DONE, words
    assert run(["validate", "--type", name, "x", *at]) in (Exit.DONE, Exit.FINDINGS)
    assert "unknown_name" not in capsys.readouterr().err
    code = run(["new", name, "--plan", "01-07", "--phase", "1", *at])
    out = capsys.readouterr()
    assert code == Exit.DONE or "exists already" in out.err


@pytest.mark.parametrize(
    "name", ["message/dev_blocker", "dev_blocker", "artifact/plan/task", "plan/task"]
)
def test_show_prints_one_schema(capsys: pytest.CaptureFixture[str], name: str) -> None:
    run(["schema", "show", name])
    shown = json.loads(capsys.readouterr().out)
    assert shown["$id"].startswith("urn:yolo-fs:schema:")
    assert shown == schema(capsys, "show", name)[1]["data"]


def test_show_prints_all_lines_of_a_kind(capsys: pytest.CaptureFixture[str]) -> None:
    data = schema(capsys, "show", "plan")[1]["data"]
    assert list(data) == [
        f"artifact/plan/{line}" for line in ("header", "task", "turbo-header", "turbo-task")
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("architecture", "TOON"),
        ("message", "message/qa_result"),
        ("envelope", "envelope/prd-report"),
    ],
)
def test_show_says_what_stands_in_the_place_of_a_schema(
    capsys: pytest.CaptureFixture[str], name: str, expected: str
) -> None:
    assert run(["schema", "show", name]) == Exit.DONE
    assert expected in capsys.readouterr().out


def test_unknown_kind_is_a_usage_error_with_the_nearest_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, answer = schema(capsys, "show", "dev_bloker")
    assert code == Exit.USAGE
    assert "dev_blocker" in answer["findings"][0]["hint"]


def test_an_example_of_a_plan_has_files_that_the_devs_of_its_department_may_write(
    capsys: pytest.CaptureFixture[str],
) -> None:
    areas = {"ux-": "design/", "fe-": "src/components/", "": "src/"}
    for name, area in ((f"{prefix}07-01.plan.jsonl", area) for prefix, area in areas.items()):
        _, answer = schema(capsys, "example", f".yolo-planning/phases/07-pay-later/{name}")
        tasks = [json.loads(line) for line in answer["data"]["text"].splitlines()[1:]]
        assert all(path.startswith(area) for task in tasks for path in task["f"]), name


def test_an_example_of_what_belongs_to_a_plan_is_of_its_own_tasks_and_their_commits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    team = Team(tmp_path / "shop")
    team.config(BACKEND)
    team.begin()
    team.plan_one()
    before = team_plan(team)
    assert not any("spec" in task for task in before[1:])

    def example(name: str) -> list[dict[str, Any]]:
        path = f".yolo-planning/phases/01-auth/{name}"
        _, answer = schema(capsys, "example", path, "-C", str(team.root))
        return [json.loads(line) for line in answer["data"]["text"].splitlines()]

    header, *tasks = example("01-01.plan.jsonl")
    assert header == before[0]
    assert [{key: task[key] for key in task if key != "spec"} for task in tasks] == before[1:]
    assert all(task["spec"] for task in tasks)

    files = sorted({name for task in tasks for name in task["f"]})
    done = []
    for number, name in enumerate(files, 1):
        team.file(name, "x\n")
        done.append(team.user_commits(f"feat(01-01): T{number} work", name))
    (summary,) = example("01-01.summary.jsonl")
    assert (summary["tc"], summary["tt"]) == (len(tasks), len(tasks))
    assert [commit[:12] for commit in done] == summary["ch"]
    assert sorted(set(summary["fm"])) == files


def test_an_example_names_no_commit_of_a_department_with_a_plan_of_the_same_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    team = Team(tmp_path / "shop")
    team.config(THREE)
    team.begin()
    team.plan_one()
    text = (team.root / ".yolo-planning/phases/01-auth/01-01.plan.jsonl").read_text()
    team.artifact("fe-01-01.plan.jsonl", text.replace("src/", "src/components/"))
    team.once()
    made = {}
    for folder in ("src/auth", "src/components/auth"):
        team.file(f"{folder}/tokens.ts", "x\n")
        made[folder] = team.user_commits("feat(01-01): T1 work", f"{folder}/tokens.ts")[:12]
    for name, folder in (("01-01", "src/auth"), ("fe-01-01", "src/components/auth")):
        path = f".yolo-planning/phases/01-auth/{name}.summary.jsonl"
        _, answer = schema(capsys, "example", path, "-C", str(team.root))
        assert json.loads(answer["data"]["text"])["ch"] == [made[folder]], name


def team_plan(team: Team) -> list[dict[str, Any]]:
    text = (team.root / ".yolo-planning/phases/01-auth/01-01.plan.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", ["design-handoff.jsonl", "fe-architecture.toon"])
def test_an_example_for_a_path_is_of_the_phase_that_the_path_lies_in(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    code, answer = schema(capsys, "example", f".yolo-planning/phases/07-pay-later/{name}")
    text = answer["data"]["text"]
    assert code == Exit.DONE
    assert 'phase":"07"' in text or 'phase: "07"' in text
    assert "01-auth" not in text


@pytest.mark.parametrize("near", ["plan.jsonl", "01-02-PLAN.md", "plan.json"])
def test_an_example_is_found_by_nearly_the_name_of_its_file(
    capsys: pytest.CaptureFixture[str], near: str
) -> None:
    code, answer = schema(capsys, "example", near)
    assert code == Exit.DONE
    assert answer["data"]["text"].startswith('{"p": "01"')


def test_export_writes_every_schema_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, first = schema(capsys, "export", "out", "-C", str(tmp_path))
    files = sorted(str(path.relative_to(tmp_path / "out")) for path in tmp_path.rglob("*.json"))
    assert files == sorted(first["data"]["written"])
    (tmp_path / "out" / files[0]).write_text("{}")
    _, second = schema(capsys, "export", "out", "-C", str(tmp_path))
    assert second["data"] == {"written": [files[0]], "unchanged": len(files) - 1}


def test_export_where_nothing_can_be_written_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").write_text("a file")
    code, answer = schema(capsys, "export", "out", "-C", str(tmp_path))
    assert (code, answer["findings"][0]["reason"]) == (Exit.TRY_AGAIN, "storage_failed")
