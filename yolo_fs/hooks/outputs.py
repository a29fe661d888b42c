"""Programs that write where an argument says, one row each. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from yolo_fs.hooks.effects import Effect, Seen, touch_all, touch_of
from yolo_fs.hooks.program import Program, key_by_name
from yolo_fs.hooks.shell import Word

_NONE, _FIRST, _LAST, _EVERY = slice(0, 0), slice(0, 1), slice(-1, None), slice(None)


class Output(NamedTuple):
    """Where the arguments of a program say what it writes."""

    files: str = ""
    """Options whose value is a file that it writes."""
    folders: str = ""
    """Options whose value is a folder in which it may write any file."""
    operands: slice = _NONE
    """Its operands that are such a file or folder."""
    fewest: int = 1
    """With fewer operands it writes none of them."""
    only_with: str = ""
    """Words of which one has to be there, or it writes none of its operands."""
    is_here: bool = False
    """Whether it writes in the current folder where it has fewer operands."""


OUTPUTS: Mapping[str, Output] = key_by_name(
    {
        "tee touch truncate sponge fallocate mkfifo": Output(operands=_EVERY),
        "ed ex vi vim nvim nano emacs code": Output(operands=_EVERY),
        "merge mknod": Output(operands=_FIRST),
        "ditto lz4 uniq xxd objcopy ffmpeg convert magick lwp-download json.tool": Output(
            operands=_LAST, fewest=2
        ),
        "zipfile tarfile": Output(
            files="-c --create", operands=_LAST, fewest=2, only_with="-e --extract", is_here=True
        ),
        "docker podman kubectl gsutil aws rclone": Output(
            operands=_LAST, fewest=3, only_with="cp copy mv move sync"
        ),
        "svn": Output(operands=_LAST, fewest=3, only_with="export"),
        "sd": Output(operands=slice(2, None), fewest=3),
        "rename prename mmv": Output(operands=_EVERY),
        "curl": Output(
            files="-o -D --dump-header -c --cookie-jar --trace --trace-ascii --stderr",
            folders="--output-dir",
        ),
        "wget": Output(
            files="-O --output-document -a --append-output",
            folders="-P --directory-prefix",
        ),
        "aria2c": Output(files="-o", folders="-d --dir"),
        "openssl": Output(files="-out"),
        "rsync": Output(files="--log-file", folders="--backup-dir --temp-dir -T --partial-dir"),
        "patch": Output(files="-o -r --reject-file"),
        "pip pip3": Output(folders="-t --target -d --dest --root --prefix"),
        "npm": Output(folders="--pack-destination"),
        "unar": Output(folders="-o -output-directory"),
        "unsquashfs": Output(folders="-d -dest"),
        "csplit": Output(files="-f --prefix"),
        "tree shuf iconv gpg gpg2 age zstd base64 pv mbuffer psql http xh": Output(files="-o"),
        "sort gcc g++ cc clang go rustc ld dot pandoc mmdc zipapp": Output(files="-o"),
        "git-apply": Output(folders="--directory"),
        "git-read-tree": Output(folders="--prefix"),
        "git-checkout-index": Output(folders="--prefix", operands=_EVERY),
        "git-bundle": Output(operands=slice(1, 2), only_with="create"),
        "git-archive": Output(files="-o"),
        "git-format-patch": Output(folders="-o --output-directory"),
    }
)
"""Program → where it writes. A subcommand of git, and a module of Python, is a program."""
_ANY = ("--output", "--output-file", "--outfile", "--out", "--out-file")
"""Options that name what is written, whatever the program."""


def find_outputs(program: Program) -> Seen:
    """Yield what the arguments of a program say that it writes."""
    row = OUTPUTS.get(program.name.replace(" ", "-"), Output())
    for word in program.values(*row.files.split(), *_ANY):
        if re.search(r"[./]", word.text) and not re.search(r"[{}=\s]", word.text):
            yield from touch_of(word, Effect.WRITE)
    yield from touch_all(program.values(*row.folders.split()), Effect.FILL)
    if row.only_with and not {word.text for word in program.arguments} & {*row.only_with.split()}:
        return
    operands = program.operands()
    if row.is_here and len(operands) < row.fewest:
        yield from touch_of(Word("."), Effect.FILL)
    for word in operands[row.operands] if len(operands) >= row.fewest else ():
        yield from touch_of(word, Effect.WRITE)
        yield from touch_of(word, Effect.FILL)
