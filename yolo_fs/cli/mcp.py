"""`yolo-fs mcp`: the Model Context Protocol on stdio, for hosts without hooks, in any language."""

from __future__ import annotations

import gc
import os

import click

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Exit, Reason, YoloError


@verb("mcp", example="yolo-fs mcp --as yolo-dev")
@click.option(
    "--as",
    "agent",
    default="",
    metavar="AGENT",
    help="Whose rights hold for every call, such as yolo-dev; by itself whom each call names.",
)
def mcp(asked: Invocation, *, agent: str) -> Reply:
    """Serve a Model Context Protocol host on stdin and stdout: ten tools, and resources that
    tell of changes.

    Hosts call this; 'yolo-fs setup HOST --mcp' registers it. Roles and isolation hold as in the
    hooks.
    """
    gc.disable()  # a fifth of the time that the import of this library takes
    try:
        from yolo_fs.mcp.server import Server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise YoloError(
            Reason.FILE_MISSING,
            "the library 'mcp' is not installed",
            hint="Install it with yolo-fs: pipx install 'yolo-fs[mcp]', or pip install mcp.",
            exit_code=Exit.NOT_HERE,
        ) from error
    finally:
        gc.enable()
    with Repository(asked.start) as repository:
        root = repository.root
    os.chdir(root)
    Server(root, agent).run()
    return Reply()
