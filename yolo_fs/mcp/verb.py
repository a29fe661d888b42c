"""`yolo-fs mcp`: the Model Context Protocol on stdio, for hosts without hooks, in any language."""

from __future__ import annotations

import gc
import os

import click

from yolo_fs.authority.actors import check_agent
from yolo_fs.cli.reply import Invocation, Reply, require_libraries, verb
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.repository import Repository


@verb("mcp", example="yolo-fs mcp --as yolo-dev")
@click.option(
    "--as",
    "agent",
    default="",
    metavar="AGENT",
    help="Role whose rights apply to every call, such as yolo-dev; default: the role that each "
    "call names, unproved.",
)
def mcp(invocation: Invocation, *, agent: str) -> Reply:
    """Serve a Model Context Protocol host on stdin and stdout: eleven tools, and resources with
    notifications of changes.

    Called by hosts; 'yolo-fs setup HOST --mcp' registers it. Roles and isolation apply as in the
    hooks.
    """
    require_libraries("mcp")
    check_agent(agent)
    gc.disable()  # a fifth of the time that the import of this library takes
    try:
        from yolo_fs.mcp.server import Server
    finally:
        gc.enable()
    Server(_root(invocation.start), agent).run()
    return Reply()


def _root(start: str) -> str:
    """Return where the repository is, and go there; where there is none, the place itself: hosts
    start us anywhere, and show what a tool answers, but not why a server has ended.
    """
    try:
        with Repository(start) as repository:
            root = repository.root
    except YoloError as error:
        if error.reason is not Reason.NOT_A_REPOSITORY:
            raise
        return os.path.abspath(start)
    os.chdir(root)
    return root
