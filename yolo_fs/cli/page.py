"""`yolo-fs board`: the team in the browser, live."""

from __future__ import annotations

import click

from yolo_fs.cli.reply import Invocation, Reply, verb


@verb("board", example="yolo-fs board --port 8700 --no-open")
@click.option(
    "--port", default=0, type=click.IntRange(0, 65_535), help="Port; any free one by default."
)
@click.option("--no-open", is_flag=True, help="Only print the address.")
@click.option(
    "--repo",
    "folders",
    multiple=True,
    metavar="DIR",
    help="Show this repository; may be repeated. Default: this one.",
)
def board(asked: Invocation, *, port: int, no_open: bool, folders: tuple[str, ...]) -> Reply:
    """Show the team in the browser, live and back in time, until interrupted. It changes nothing.

    The first line is the address. Only this machine and this user can open it: it holds a token
    that is new each time. Works with and without a running daemon. Needs the extra: pip install
    'yolo-fs[web]'.
    """
    try:
        from yolo_fs.web.server import BoardServer
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise click.UsageError("the board needs more: pip install 'yolo-fs[web]'") from error
    server = BoardServer(folders or (asked.start,), port)
    print(server.url, flush=True)
    if not no_open:
        import webbrowser

        webbrowser.open(server.url)
    server.serve()
    return Reply()
