"""The service file runs exactly our command, is written only where it is ours, and is never enabled."""

from __future__ import annotations

import json
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit, Reason, YoloError
from yolo_fs.install.background import System, unit_for

SYSTEMS = ["--systemd", "--launchd"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    work_tree = tmp_path / "Über 100%"
    subprocess.run(["git", "init", "-q", str(work_tree)], check=True)
    (work_tree / ".yolo-planning").mkdir()
    return work_tree.resolve()


def service(
    root: Path, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, dict[str, Any]]:
    code = run(["service", *arguments, "-C", str(root), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_print_gives_the_bare_text_and_writes_nothing(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["service", "print", "--systemd", "-C", str(root)])
    assert capsys.readouterr().out == unit_for(str(root), "", System.SYSTEMD).text
    assert not (tmp_path / "home").exists()


def test_the_systemd_unit_notifies_and_is_restarted_on_failure(root: Path) -> None:
    lines = unit_for(str(root), "", System.SYSTEMD).text.splitlines()
    assert {"Type=notify", "Restart=on-failure", "WantedBy=default.target"} <= set(lines)


def test_what_systemd_would_expand_is_plain_text() -> None:
    text = unit_for('/100%/$HOME/"quoted"\\', "", System.SYSTEMD).text
    (command,) = (line for line in text.splitlines() if line.startswith("ExecStart="))
    assert command.endswith('"/100%%/$$HOME/\\"quoted\\"\\\\"')
    assert f'"{sys.executable}" "-X" "utf8" "-P" "-m" "yolo_fs" "run" "-C"' in command


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_finds_no_fault_in_the_unit(root: Path, tmp_path: Path) -> None:
    unit = unit_for(str(root), "", System.SYSTEMD)
    (tmp_path / unit.name).write_text(unit.text)
    checked = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / unit.name)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        checked.returncode,
        [line for line in checked.stderr.splitlines() if unit.name in line],
    ) == (0, [])


def test_the_launchd_job_runs_our_command(root: Path) -> None:
    unit = unit_for(str(root), "/log", System.LAUNCHD)
    job = plistlib.loads(unit.text.encode())
    assert job["ProgramArguments"] == [
        sys.executable,
        "-X",
        "utf8",
        "-P",
        "-m",
        "yolo_fs",
        "run",
        "-C",
        str(root),
    ]
    assert (job["Label"], job["StandardErrorPath"]) == (unit.name, "/log")
    assert job["KeepAlive"] == {"SuccessfulExit": False}


@pytest.mark.parametrize("system", System)
def test_each_repository_has_a_service_of_its_own(system: System) -> None:
    names = [unit_for(path, "", system).name for path in ("/a/project", "/b/project", "/", "/ü")]
    assert len(set(names)) == 4
    assert all(name.isascii() and " " not in name for name in names)


def test_a_path_with_a_newline_is_refused() -> None:
    with pytest.raises(YoloError) as caught:
        unit_for("/a\nExecStart=evil", "", System.SYSTEMD)
    assert caught.value.reason is Reason.BAD_NAME


@pytest.mark.parametrize("system", SYSTEMS)
def test_install_writes_once_and_says_how_to_enable(
    root: Path, capsys: pytest.CaptureFixture[str], system: str
) -> None:
    code, answer = service(root, capsys, "install", system)
    file = Path(answer["data"]["path"])
    written = file.read_text()
    assert (code, answer["data"]["state"]) == (Exit.DONE, "installed")
    assert (
        answer["data"]["name"] in answer["data"]["enable"] or str(file) in answer["data"]["enable"]
    )
    assert service(root, capsys, "install", system)[1]["data"]["state"] == "already_installed"
    assert file.read_text() == written
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_file_of_ours_is_replaced_and_another_is_not(
    root: Path, capsys: pytest.CaptureFixture[str], system: str
) -> None:
    file = Path(service(root, capsys, "install", system)[1]["data"]["path"])
    ours = file.read_text()
    file.write_text(ours.replace(sys.executable, "/old/python"))
    assert service(root, capsys, "install", system)[1]["data"]["state"] == "updated"
    assert file.read_text() == ours
    file.write_text("somebody's own\n")
    for verb in ("install", "uninstall"):
        code, answer = service(root, capsys, verb, system)
        assert (code, answer["findings"][0]["reason"]) == (Exit.FINDINGS, "state_conflict")
    assert file.read_text() == "somebody's own\n"


@pytest.mark.parametrize("system", SYSTEMS)
def test_uninstall_removes_and_a_second_one_finds_nothing(
    root: Path, capsys: pytest.CaptureFixture[str], system: str
) -> None:
    file = Path(service(root, capsys, "install", system)[1]["data"]["path"])
    states = [service(root, capsys, "uninstall", system)[1]["data"]["state"] for _ in range(2)]
    assert states == ["uninstalled", "not_installed"]
    assert not file.exists()


def test_an_enabled_unit_is_not_removed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(service(root, capsys, "install", "--systemd")[1]["data"]["path"])
    (file.parent / "default.target.wants").mkdir()
    (file.parent / "default.target.wants" / file.name).symlink_to(file)
    code, answer = service(root, capsys, "uninstall", "--systemd")
    assert (code, answer["findings"][0]["reason"]) == (Exit.FINDINGS, "state_conflict")
    assert file.exists()


def test_without_a_planning_tree_it_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    code, answer = service(tmp_path, capsys, "install")
    assert (code, answer["findings"][0]["reason"]) == (Exit.NOT_HERE, "not_initialised")
