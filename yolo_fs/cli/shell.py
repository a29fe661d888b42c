"""`yolo-fs compat`, the drop-in scripts, each under its name in `scripts/`; and `yolo-fs
completion`, the script that makes a shell complete commands and options.
"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.compat.scripts import SCRIPTS, run


class _Unparsed(click.Command):
    """Passes every argument to the script, including `--` and `--help`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.args = list(args)
        return []


@click.command("compat", cls=_Unparsed, add_help_option=False, options_metavar="NAME [ARG]...")
@click.pass_context
def compat(ctx: click.Context) -> int:
    """Run one of the reference's shell scripts: same arguments, same output, same exit codes.

    Called by the scripts in scripts/; docs/scripts.md lists where they differ. An unknown NAME
    prints the list of names.

    \b
    Example:  yolo-fs compat dept-gate --gate all-depts --phase-dir phases/01-auth --no-poll
    """
    name, *arguments = ctx.args or ["--help"]
    if name in ("-h", "--help"):
        click.echo(ctx.get_help())
        return 0
    if name not in SCRIPTS:
        raise click.UsageError(f"no script is named {name!r}; there are {', '.join(SCRIPTS)}", ctx)
    return run(name, arguments)


SHELLS = ("bash", "zsh", "fish")


@verb("completion", example='eval "$(yolo-fs completion bash)"')
@click.argument("shell", type=click.Choice(SHELLS))
def completion(invocation: Invocation, shell: str) -> Reply:
    """Print the script that completes yolo-fs in a shell.

    For every new shell, put the line of the example into ~/.bashrc or ~/.zshrc; for fish:
    yolo-fs completion fish > ~/.config/fish/completions/yolo-fs.fish
    """
    from yolo_fs.cli.main import yolo_fs

    shell_class = get_completion_class(shell)
    assert shell_class is not None, shell
    script = shell_class(yolo_fs, {}, "yolo-fs", "_YOLO_FS_COMPLETE").source()
    return Reply({"shell": shell, "script": script}, show=lambda _: click.echo(script))
