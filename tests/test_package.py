"""What is built installs like any other package: the same bytes twice, complete, and working without the checkout.

`YOLO_PACKAGE=1` also installs it from the registry into fresh environments, with each extra alone
and with all of them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.sbom import EXTRAS, bill
from yolo_fs import __version__

ROOT = Path(__file__).parent.parent
FROM_THE_REGISTRY = pytest.mark.skipif(
    not os.environ.get("YOLO_PACKAGE"), reason="YOLO_PACKAGE=1 installs from the registry"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


def build(folder: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", folder], cwd=ROOT, check=True, capture_output=True
    )  # fmt: skip
    return folder


def wheel_in(folder: Path) -> Path:
    return next(folder.glob("*.whl"))


def test_building_twice_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    again = build(tmp_path)

    assert {path.name for path in built.iterdir()} == {path.name for path in again.iterdir()}
    for path in built.iterdir():
        assert path.read_bytes() == (again / path.name).read_bytes(), path.name


def test_the_wheel_has_types_licence_manual_and_template_and_nothing_else_of_the_checkout(
    built: Path,
) -> None:
    names = set(zipfile.ZipFile(wheel_in(built)).namelist())
    info, data = f"yolo_fs-{__version__}.dist-info", f"yolo_fs-{__version__}.data"

    assert {
        "yolo_fs/py.typed",
        "yolo_fs/_template/PROJECT.md",
        f"{info}/licenses/LICENSE",
        f"{data}/data/share/man/man1/yolo-fs.1",
    } <= names
    assert {name.partition("/")[0] for name in names} == {"yolo_fs", info, data}
    assert not [name for name in names if "__pycache__" in name]


def test_the_source_archive_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / f"yolo_fs-{__version__}"
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], cwd=unpacked, check=True,
        capture_output=True,
    )  # fmt: skip

    assert wheel_in(tmp_path).read_bytes() == wheel_in(built).read_bytes()


def test_an_unpacked_wheel_works_without_the_checkout(built: Path, tmp_path: Path) -> None:
    """The libraries are those of this environment; yolo_fs itself is the wheel's."""
    home = tmp_path / "venv"
    venv.create(home, symlinks=True)
    libraries = next(home.glob("lib/python*/site-packages"))
    zipfile.ZipFile(wheel_in(built)).extractall(libraries)
    (libraries / "ours.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")

    use(tmp_path / "shop", home / "bin/python", "-m", "yolo_fs")


@FROM_THE_REGISTRY
@pytest.mark.timeout(600)
@pytest.mark.parametrize("extras", ["", *EXTRAS, ",".join(EXTRAS)])
def test_it_installs_from_the_registry(extras: str, built: Path, tmp_path: Path) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    wanted = f"{wheel_in(built)}[{extras}]" if extras else str(wheel_in(built))
    subprocess.run([home / "bin/pip", "install", "-q", wanted], check=True)

    use(tmp_path / "shop", home / "bin/yolo-fs")
    manual = home / "share/man/man1/yolo-fs.1"
    assert manual.is_file()
    words = [home / "bin/pip", "list", "--format=json", "--disable-pip-version-check"]
    there = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    names = {canonicalize_name(each["name"]) for each in there} - {"pip", "setuptools", "yolo-fs"}
    assert names == listed(*extras.split(","))


@FROM_THE_REGISTRY
@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_it_installs_with_every_extra_on_each_python_that_is_here(
    version: str, built: Path, tmp_path: Path
) -> None:
    python = shutil.which(f"python{version}")
    if not python or subprocess.run([python, "-c", ""], capture_output=True).returncode:
        pytest.skip(f"no python{version} here")
    home = tmp_path / "venv"
    subprocess.run([python, "-m", "venv", home], check=True)
    wanted = f"{wheel_in(built)}[{','.join(EXTRAS)}]"
    subprocess.run([home / "bin/pip", "install", "-q", wanted], check=True)

    use(tmp_path / "shop", home / "bin/yolo-fs")


def use(shop: Path, *program: str | Path) -> None:
    """Make a repository ready, write an artifact, and see it committed."""
    env = {"PATH": os.environ["PATH"], "HOME": str(shop.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    env |= {f"GIT_{who}_{what}": "x@y.z" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}  # fmt: skip

    def said(*words: str | Path) -> str:
        return subprocess.run(
            words, cwd=shop, env=env, check=True, capture_output=True, text=True
        ).stdout

    shop.mkdir()
    said("git", "init", "-q")
    said(*program, "init")
    said(*program, "phase", "new", "login")
    phase = next((shop / ".yolo-planning/phases").iterdir())
    entry = {"id": "C1", "cat": "gap", "sev": "minor", "q": "Why?", "ctx": "x", "sug": "y", "st": "open", "cf": 90, "rd": 1}  # fmt: skip
    (phase / "critique.jsonl").write_text(json.dumps(entry) + "\n")
    said(*program, "run", "--once")

    assert "critique" in said("git", "log", "--format=%s")
    assert said(*program, "--version").strip() == f"yolo-fs, version {__version__}"


def test_every_component_of_the_bill_of_materials_is_locked_in_this_version_and_has_a_licence() -> (
    None
):
    lock = (ROOT / "requirements.lock").read_text()
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE))

    for part in bill()["components"]:
        assert part["version"] == locked[canonicalize_name(part["name"])], part["name"]
        (licence,) = part["licenses"]
        assert licence.get("expression") or licence["license"]["name"], part["name"]


def test_the_bill_of_materials_names_what_each_extra_asks_for_and_what_that_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {"": project["dependencies"]} | project["optional-dependencies"]

    for extra in ("", *EXTRAS):
        assert {canonicalize_name(Requirement(line).name) for line in asked[extra]} <= listed(extra)
    assert "cryptography" in listed("mcp") - listed("web")  # an extra of a library of an extra
    assert "pytest" not in listed(*EXTRAS)
    known = {part["bom-ref"] for part in bill()["components"]}
    assert {ref for each in bill()["dependencies"] for ref in each["dependsOn"]} == known


def test_the_wheel_has_no_code_of_others_that_a_bill_of_materials_would_have_to_name(
    built: Path,
) -> None:
    """What others made for browsers comes minified, under their own name, or as a font."""
    with zipfile.ZipFile(wheel_in(built)) as wheel:
        files = {
            name: wheel.read(name)
            for name in wheel.namelist()
            if name.startswith("yolo_fs/") and not name.endswith((".py", ".md", ".jsonl", ".json"))
        }
    pages = {name: data for name, data in files.items() if name.endswith((".js", ".css", ".html"))}

    assert {Path(name).suffix for name in files} <= {
        ".css", ".html", ".j2", ".js", ".png", ".svg", ".toon", ".typed", ""
    }  # fmt: skip
    assert len(pages) >= 6
    for name, data in pages.items():
        assert max(map(len, data.decode().splitlines())) < 2_000, name
        assert not re.search(rb"@license|copyright|\/\*!|\(c\) ", data, re.IGNORECASE), name


def listed(*extras: str) -> set[str]:
    """Return the names that the bill of materials has for these extras."""
    return {
        canonicalize_name(part["name"])
        for part in bill()["components"]
        if part["scope"] == "required"
        or {each["value"] for each in part["properties"]}.intersection(extras)
    }
