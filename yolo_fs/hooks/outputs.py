"""Programs that write where an argument says, one row each. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from yolo_fs.hooks.effects import Effect, Seen, touch_all, touch_of
from yolo_fs.hooks.program import Program, key_by_name
from yolo_fs.hooks.shell import Word

_NONE, _FIRST, _LAST, _EVERY = slice(0, 0), slice(0, 1), slice(-1, None), slice(None)
_MORE_THAN_ANY = 1 << 20
"""For a program that writes in the current folder, whatever its operands."""


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
    are_folders: bool = False
    """Whether its operands are folders to fill, or what it may also only read."""
    are_prefixes: bool = False
    """Whether what it is given is how the names of its files begin."""


OUTPUTS: Mapping[str, Output] = key_by_name(
    {
        "tee touch truncate sponge fallocate mkfifo": Output(operands=_EVERY),
        "ed ex vi vim nvim nano emacs code": Output(operands=_EVERY),
        "merge mknod git-merge-file": Output(operands=_FIRST),
        "split csplit": Output(
            files="-f --prefix", operands=slice(1, None), fewest=2, are_prefixes=True
        ),
        "mktemp": Output(folders="-p --tmpdir", operands=_FIRST, are_prefixes=True),
        "ditto lz4 uniq xxd objcopy ffmpeg convert magick lwp-download json.tool": Output(
            operands=_LAST, fewest=2
        ),
        "zipfile tarfile": Output(
            files="-c --create", operands=_LAST, fewest=2, only_with="-e --extract", is_here=True
        ),
        "docker podman kubectl gsutil aws rclone": Output(
            files="-o --output", operands=_LAST, fewest=3, only_with="cp copy mv move sync"
        ),
        "svn": Output(operands=_LAST, fewest=3, only_with="export"),
        "sd": Output(operands=slice(2, None), fewest=3),
        "rename prename mmv": Output(operands=_EVERY),
        "curl": Output(
            files="-o -D --dump-header -c --cookie-jar --trace --trace-ascii --stderr --etag-save"
            " --alt-svc --hsts --libcurl",
            folders="--output-dir",
            only_with="-O --remote-name --remote-name-all -J --remote-header-name",
            fewest=_MORE_THAN_ANY,
            is_here=True,
        ),
        "wget": Output(
            files="-O --output-document -a --append-output -o --save-cookies --warc-file"
            " --rejected-log",
            folders="-P --directory-prefix --hsts-file",
            fewest=_MORE_THAN_ANY,
            is_here=True,
        ),
        "aria2c": Output(files="-o", folders="-d --dir"),
        "openssl": Output(files="-out -keyout -writerand"),
        "rsync": Output(
            files="--log-file --write-batch", folders="--backup-dir --temp-dir -T --partial-dir"
        ),
        "patch": Output(files="-o -r --reject-file"),
        "pip pip3": Output(folders="-t --target -d --dest --root --prefix -w --wheel-dir --log"),
        "npm": Output(folders="--pack-destination --prefix"),
        "venv virtualenv": Output(operands=_EVERY, are_folders=True),
        "tar bsdtar gtar": Output(folders="-g --listed-incremental --index-file"),
        "7z 7za 7zr ar": Output(operands=slice(1, 2), fewest=2, are_folders=True),
        "cpio bsdcpio pax": Output(folders="-O -F --file -f"),
        "javac rollup coverage mkdocs": Output(folders="-d"),
        "sphinx-build": Output(operands=slice(1, 2), fewest=2, are_folders=True),
        "cmake": Output(folders="-B"),
        "prettier": Output(operands=_EVERY, only_with="-w --write", are_folders=True),
        "ruff": Output(operands=slice(1, None), only_with="format --fix", are_folders=True),
        "qpdf pdftotext wkhtmltopdf": Output(operands=_LAST, fewest=2),
        "pack200 perf ltrace uudecode brotli pickletools cProfile": Output(files="-o"),
        "Set-Content Add-Content Clear-Content Out-File New-Item Remove-Item Move-Item": Output(
            operands=_EVERY
        ),
        "unar": Output(folders="-o -output-directory"),
        "unsquashfs": Output(folders="-d -dest"),
        "tree shuf iconv gpg gpg2 age zstd base64 pv mbuffer psql http xh": Output(files="-o"),
        "sort gcc g++ cc clang go rustc ld dot pandoc mmdc zipapp": Output(files="-o"),
        "git-apply": Output(folders="--directory"),
        "git-read-tree git-subtree": Output(folders="--prefix -P"),
        "git-clone": Output(
            folders="--separate-git-dir", operands=slice(1, 2), fewest=2, are_folders=True
        ),
        "git-init": Output(folders="--separate-git-dir", operands=_FIRST, are_folders=True),
        "git-worktree": Output(
            operands=slice(1, None), fewest=2, only_with="add move", are_folders=True
        ),
        "git-submodule": Output(
            operands=slice(2, None), fewest=3, only_with="add", are_folders=True
        ),
        "git-fast-export git-fast-import": Output(files="--export-marks"),
        "git-checkout-index": Output(folders="--prefix", operands=_EVERY),
        "git-bundle": Output(operands=slice(1, 2), only_with="create"),
        "git-archive": Output(files="-o"),
        "git-format-patch": Output(folders="-o --output-directory"),
    }
)
"""Program → where it writes. A subcommand of git, and a module of Python, is a program."""
_ANY = ("--output", "--output-file", "--outfile", "--out", "--out-file")
"""Options that name what is written, whatever the program."""
_SAYS_OUTPUT = re.compile(
    r"out|dest|save|export|dump|log|report|xml|html|prof|cache|build|site|install|marks|trace"
    r"|screenshot|temp|result|_dir|director|dist|target",
    re.IGNORECASE,
)
"""Names of options that say so of programs without a row, as in `pytest --junitxml=FILE`."""


def find_outputs(program: Program) -> Seen:
    """Yield what the arguments of a program say that it writes."""
    row = OUTPUTS.get(program.name.replace(" ", "-"), Output())
    for word in program.values(*row.files.split(), *_ANY):
        if re.search(r"[./]", word.text) and not re.search(r"[{}=\s]", word.text):
            yield from touch_of(word, Effect.WRITE)
        yield from _begun_with(word) if row.are_prefixes else ()
    yield from touch_all(program.values(*row.folders.split()), Effect.FILL)
    if not program.name.startswith("git "):
        yield from _named_by_options(program)
    if row.only_with and not _has_one(program, row.only_with.split()):
        return
    operands = program.operands()
    if row.is_here and len(operands) < row.fewest:
        places = program.values(*row.files.split(), *row.folders.split())
        yield from touch_of(Word("."), Effect.FILL) if not places else ()
    for word in operands[row.operands] if len(operands) >= row.fewest else ():
        if row.are_prefixes:
            yield from _begun_with(word)
        elif not row.are_folders:
            yield from touch_of(word, Effect.WRITE)
        yield from touch_of(word, Effect.FILL)


def _has_one(program: Program, words: Sequence[str]) -> bool:
    options = [word for word in words if word.startswith("-")]
    return program.has(*options) or any(word.text in words for word in program.arguments)


def _begun_with(word: Word) -> Seen:
    """Any file of the folder in which names begin like that."""
    yield from touch_of(Word(posixpath.dirname(word.marked) or "."), Effect.FILL)


def _named_by_options(program: Program) -> Seen:
    """What the value of an option names whose own name says that it is written."""
    for word, behind in pairwise((*program.arguments, Word(""))):
        option, is_joined, value = word.marked.partition("=")
        if not option.startswith("-"):
            continue
        if option == "-o" or _SAYS_OUTPUT.search(option[:_LONGEST_OPTION]):
            named = value if is_joined else behind.marked
            if not named.startswith("-"):  # as in `--cov-report html:FOLDER`
                yield from touch_of(Word(named.rpartition(":")[2]), Effect.FILL)


_LONGEST_OPTION = 80
