"""Every command of the tutorial runs as the page shows it, in one new repository.

What only looks is asked again until it shows what the page says: the daemon needs a moment, a
reader takes one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PAGE = Path(__file__).parents[1] / "docs/tutorial.md"
DEADLINE_S = 60
ONLY_LOOKS = ("git log", "yolo-fs status", "yolo-fs resume", "yolo-fs workflow", "yolo-fs gate")


class Command(NamedTuple):
    """One command of the page, and the lines that it shows."""

    text: str
    shown: list[str]


def commands() -> Iterator[Command]:
    """Yield the commands of the page in their order."""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            more = [line for line in lines[1:] if line.startswith("> ")]
            text = "\n".join([lines[0], *(line[2:] for line in more)])
            yield Command(text, lines[1 + len(more) :])


def is_shown(said: str, shown: list[str]) -> bool:
    """Return whether an output is what the page shows; `…` stands for anything."""
    pattern = "".join(r"(?s:.*)" if line == "…" else rf"{_pattern(line)}\n" for line in shown)
    return re.fullmatch(pattern, said.rstrip("\n") + "\n" if said else "") is not None


def _pattern(line: str) -> str:
    return ".*".join(map(re.escape, line.split("…")))


@pytest.mark.timeout(300)
def test_every_command_of_the_tutorial_shows_what_the_page_says(tmp_path: Path) -> None:
    programs = Path(sys.executable).parent
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}  # fmt: skip
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = A person\n\temail = a@example.org\n")
    begun, *rest = commands()
    writers = re.compile(r"cat > (\S+) .*# the (\w+)$", re.MULTILINE)
    subprocess.run(["bash", "-ec", begun.text], cwd=tmp_path, env=env, check=True)
    shop, written = tmp_path / "shop", set()
    try:
        for command in rest:
            said = run_until_shown(command, shop, env)
            assert is_shown(said, command.shown), f"{command.text}\n{said}"
            for path, role in writers.findall(command.text):
                may = ["yolo-fs", "may", role.lower(), "write", path]
                assert subprocess.run(may, cwd=shop, env=env, check=False).returncode == 0
                written.add(path)
    finally:
        subprocess.run(["yolo-fs", "stop", "-q"], cwd=shop, env=env, check=False)
    assert len(rest) > 12
    assert len(written) == sum("cat > " in command.text for command in rest) - 1  # one is mended


def test_the_readme_leads_a_repository_of_ones_own_to_the_first_commit_in_under_ten_commands(
    tmp_path: Path,
) -> None:
    """With a history, hooks of husky's, something staged, and from a folder below the root."""
    programs = Path(sys.executable).parent
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}  # fmt: skip
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = A person\n\temail = a@example.org\n")
    project, below = tmp_path / "my-project", tmp_path / "my-project/src"
    subprocess.run(["bash", "-ec", OWN_REPOSITORY], cwd=tmp_path, env=env, check=True)
    page = README.read_text().partition("## The first ten minutes")[2]
    typed = [line.partition("#")[0][2:] for line in page.splitlines() if line.startswith("$ ")]
    typed = [words.removeprefix("cd my-project && ") for words in typed]
    first = [words for words in typed if not words.startswith(("yolo-fs go", "yolo-fs board"))]
    critique = f"> ../{PHASE}/critique.jsonl yolo-fs schema example critique"
    try:
        for words in (*first, "yolo-fs phase new login", critique):
            subprocess.run(["bash", "-ec", words], cwd=below, env=env, check=True)
        shown = Command("git log --format=%s -3", [SUBJECT, "chore(repo): add yolo", "feat: 50"])
        assert is_shown(said := run_until_shown(shown, project, env), shown.shown), said
    finally:
        subprocess.run(["yolo-fs", "stop", "-q"], cwd=project, env=env, check=False)
    assert len(first) == 4  # with two that install it: eight
    left = subprocess.check_output(["git", "status", "--porcelain"], cwd=project, env=env)
    assert left == b"A  src/staged.js\n"


README = PAGE.parents[1] / "README.md"
PHASE = ".yolo-planning/phases/01-login"
SUBJECT = "docs(01): critique and gap analysis"
OWN_REPOSITORY = """
git init -q -b main my-project && cd my-project && mkdir -p src .husky
printf '#!/bin/sh\\nexit 0\\n' > .husky/pre-commit && chmod +x .husky/pre-commit
git config core.hooksPath .husky
for number in $(seq 50); do
    echo "$number" > src/a.js && git add . && git commit -q -m "feat: $number"
done
echo new > src/staged.js && git add src/staged.js
"""


def run_until_shown(command: Command, shop: Path, env: dict[str, str]) -> str:
    """Run a command; one that only looks again, until it shows what it should or the time is up."""
    ends_at = time.monotonic() + DEADLINE_S
    while True:
        done = subprocess.run(
            ["bash", "-ec", command.text], cwd=shop, env=env, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        is_over = is_shown(done.stdout, command.shown) or time.monotonic() > ends_at
        if is_over or not command.text.startswith(ONLY_LOOKS):
            assert done.returncode == 0, f"{command.text}\n{done.stdout}"
            return done.stdout
        time.sleep(0.2)


def test_another_output_is_not_taken_for_what_the_page_shows() -> None:
    assert is_shown("a\nb\nc 1 d", ["…", "c … d"])
    assert not is_shown("a\nb\nc 1 e", ["…", "c … d"])
    assert not is_shown("a\nb", ["a"])
