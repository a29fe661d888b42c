"""`yolo-fs completion`: the script that makes a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from yolo_fs.cli.reply import Invocation, Reply, verb

SHELLS = ("bash", "zsh", "fish")


@verb("completion", example='eval "$(yolo-fs completion bash)"')
@click.argument("shell", type=click.Choice(SHELLS))
def completion(asked: Invocation, shell: str) -> Reply:
    """Print the script that completes yolo-fs in a shell.

    For every new shell, put the line of the example into ~/.bashrc or ~/.zshrc; for fish:
    yolo-fs completion fish > ~/.config/fish/completions/yolo-fs.fish
    """
    from yolo_fs.cli.main import yolo_fs

    shell_class = get_completion_class(shell)
    assert shell_class is not None, shell
    script = shell_class(yolo_fs, {}, "yolo-fs", "_YOLO_FS_COMPLETE").source()
    return Reply({"shell": shell, "script": script}, show=lambda _: click.echo(script))
