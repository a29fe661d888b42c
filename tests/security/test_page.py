"""The page of threats names whatever the code starts, opens and lets a repository say: it is read against the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PAGE = " ".join((PROJECT / "docs/threats.md").read_text().split())
STARTS = {
    "checking/verify_command.py": "`verify_command` of one work tree",
    "company/agents.py": "the program of an agent for `go`, `debug`, `fix-it`, `research` and `qa`",
    "company/dev_trees.py": "Python with this package",
    "daemon/observing.py": "Python with this package",
    "demo/agent.py": "the scripted agent of `demo`",
    "demo/shop.py": "the scripted agent of `demo`",
    "escalation_service/command_hook.py": "the command for escalations",
    "git/runner.py": "yolo_fs starts these programs: git;",
    "install/background.py": "Python with this package",
    "system/process_group.py": "the command for escalations and the `verify_command` of your own configuration",
    "system/system.py": "`lsof` and `ps` on systems without `/proc`",
    "web/opening.py": "the browser for `board`",
}
"""Module that starts programs → how the page says so."""
OPENS = {
    "cli/background.py": "`NOTIFY_SOCKET`",
    "observer/following.py": "a Unix socket in `.git/yolo-fs`",
    "observer/switchboard.py": "a Unix socket in `.git/yolo-fs`",
    "system/ask.py": "a Unix socket in `.git/yolo-fs`",
    "system/notifier.py": "connections to the NATS servers that you named",
    "web/server.py": "a listener on 127.0.0.1",
}
"""Module that opens sockets → how the page says so."""
AS_TYPED = {
    "compat/git_commit_serialized.py": "`compat git-commit-serialized`",
    "hooks/doctor.py": "`yolo-fs hooks doctor`",
    "hooks/githooks.py": "`yolo-fs hooks doctor`",
    "hooks/run.py": "`git-hook …` (which git itself started)",
    "tasks/service.py": "`yolo-fs commit`",
}
"""Module that runs git with the hooks and filters of whoever typed the command → how the page says so."""


def calls(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted name of whatever is called, handed on or imported, such as `subprocess.run`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            used = [each for each in (node.func, *node.args) if isinstance(each, ast.Attribute)]
            yield from (ast.unparse(each).lstrip("_") for each in used)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def called_in(path: Path) -> tuple[str, ...]:
    """Return what a module calls; parsing all of them once takes most of the time of this file."""
    return tuple(calls(ast.parse(path.read_text())))


def starts(name: str) -> bool:
    module, _, function = name.rpartition(".")
    return (
        (module == "subprocess" and function in ("run", "Popen", "call", "check_output", "check_call"))
        or (module == "os" and function.startswith(("exec", "spawn", "posix_spawn", "system", "popen")))
        or re.fullmatch(r"git\b.*\.execute", name) is not None
        or name == "yolo_fs.system.process_group.start_group"
        or name in ("webbrowser.open", "pty.spawn", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell")
    )  # fmt: skip


def opens(name: str) -> bool:
    return name in (
        "socket.socket", "socket.create_connection", "socket.create_server", "uvicorn.Server", "nats.aio.client.Client",
        "asyncio.start_server", "asyncio.open_connection", "http.client.HTTPConnection", "urllib.request.urlopen",
    )  # fmt: skip


def runs_as_typed(name: str) -> bool:
    return name == "yolo_fs.git.as_user.run_as_user"


@pytest.mark.parametrize(
    ("does", "told"), [(starts, STARTS), (opens, OPENS), (runs_as_typed, AS_TYPED)]
)
def test_whatever_the_code_starts_and_opens_stands_on_the_page(
    does: Callable[[str], bool], told: Mapping[str, str]
) -> None:
    package = PROJECT / "yolo_fs"
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if any(map(does, called_in(path)))
    }
    assert found == told.keys()
    assert [words for words in told.values() if words not in PAGE] == []
