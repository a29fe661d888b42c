"""Files that ordinary programs read and change. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, takewhile

from yolo_fs.hooks.effects import (
    Destruction,
    Effect,
    OwnUse,
    Seen,
    Touch,
    Undecided,
    touch_all,
    touch_chosen,
    touch_deep,
    touch_named,
    touch_of,
)
from yolo_fs.hooks.outputs import find_outputs
from yolo_fs.hooks.program import Program, input_of, key_by_name, touch_options
from yolo_fs.hooks.shell import UNKNOWN, Word
from yolo_fs.protocol.verbs import ALWAYS, OWN_VERB_BY_NAME, PROGRAM_NAMES

_SCRIPT_WRITES = re.compile(r"(?:^|[;/}\d\s])w\s+([^\s;}]+)")
"""The command `w FILE` of sed."""
_SCRIPT_NAMES = re.compile(r"w([^\s;}]+)")
"""What may be a file of the command `wFILE` of sed, or the end of a word."""
_SCRIPT_READS = re.compile(r"(?:^|[;/}\d\s])[rRe]\s+([^;}\n]+)")
"""The commands `r FILE` and `R FILE` of sed, and `e COMMAND`."""
_QUOTED = re.compile(r"\"([^\"]+)\"")
_AWK_WRITES = re.compile(r">>?\s*\"([^\"]+)\"")

_WITHOUT_FILES = """
    echo printf ls stat test [ df basename dirname realpath readlink pwd which type
    hash true false : sleep kill ps cd pushd popd exit return shift wait set unset export local
    declare readonly read let seq alias command expr
"""
"""Programs that read the content of no argument and of no option."""
_WITH_LISTS = "date file du tree"
"""Programs that read a file only as a list, by an option."""
RUNS_ELSEWHERE = """
    docker-compose kubectl helm terraform npm yarn pip pip3 brew apt-get apt systemctl ping history
"""
"""Programs whose operands are rarely files, and are read where they are."""
WITHOUT_OPTIONS = frozenset((*_WITHOUT_FILES.split(), *PROGRAM_NAMES, "git", "find", "fd", "ssh"))
"""Programs none of whose options reads a file, or which are looked at more closely."""
_LANGUAGES = """
    sqlite3 psql mysql mariadb duckdb mongosh redis-cli gdb lldb vim vi nvim view ex ed emacs
    gnuplot bc dc octave R Rscript tmux screen ftp sftp lftp expect tclsh osascript socat ffmpeg m4
"""
"""Programs with a language of their own, in which a command may read a file: `.read FILE`."""
WITH_LANGUAGE = frozenset(_LANGUAGES.split())
READS_NOTHING = frozenset(
    f"{_WITHOUT_FILES} {_WITH_LISTS} {RUNS_ELSEWHERE} ssh rm rmdir unlink mkdir chmod chown touch"
    " mv ln".split()
)


def _removes(program: Program) -> Seen:
    if program.has("-r", "-R", "--recursive") or program.name in ("rimraf", "trash"):
        paths = tuple(word.text for word in program.operands())
        is_found = any("/**/" in path for path in paths)  # git takes such a pattern otherwise
        yield Destruction(program.line, () if is_found else paths, untracked=True)
    yield from touch_all(program.operands(), Effect.REMOVE)


def _compresses(program: Program) -> Seen:
    keeps = program.has("-c", "--stdout", "-k", "--keep", "-l", "-t")
    yield from touch_all(program.operands(), Effect.READ if keeps else Effect.REMOVE)
    if not program.has("-c", "--stdout", "-l", "-t"):
        for word in program.operands():  # what was packed
            yield from touch_of(Word(posixpath.splitext(word.marked)[0]), Effect.FILL)


def _alters(program: Program) -> Seen:
    yield from touch_all(program.operands(), Effect.ALTER)


def _alters_rest(program: Program) -> Seen:
    """Yield the operands after the mode or the owner, which an option may replace: `chmod -x`."""
    mode = _MODE_AS_OPTION.get(program.name, "--reference")
    before = [word.text for word in takewhile(lambda word: word.text != "--", program.arguments)]
    is_given = any(re.fullmatch(mode, text.partition("=")[0]) for text in before)
    yield from touch_all(program.operands()[0 if is_given else 1 :], Effect.ALTER)


_MODE_AS_OPTION = {
    "chmod": r"-[Rcfv]*[rwxXstugoa,+0-7].*|--reference",
    "chattr": r"-[RVf]*[^RVfvp-].*",
}
"""Options that replace the first operand."""


def touches_nothing(_: Program) -> Seen:
    """Yield nothing."""
    yield from ()


def _reads_lists(program: Program) -> Seen:
    yield from touch_all(program.values("-f", "--fromfile"), Effect.READ)


def _runs_elsewhere(program: Program) -> Seen:
    for word in takewhile(lambda word: word.text != "--", program.arguments):
        if not re.search(r"\s", word.text):
            yield from touch_named(word.text)


def _examine_ssh(program: Program) -> Seen:
    """Its options; behind the host is what runs there."""
    host = next(iter(program.operands()), None)
    own = takewhile(lambda word: word is not host, program.arguments)
    yield from touch_options(program._replace(arguments=tuple(own)))


def _examine_list_reader(program: Program) -> Seen:
    """A program that reads the files whose names it is given on its input."""
    names = input_of(program.command)
    if names is None and program.command.source:
        names = UNKNOWN
    passes = program.has("-p", "--pass-through") or program.name == "pax"
    if program.has("-i", "-r", "--extract") or passes:
        passed = program.operands()[-1:] if passes else []
        yield from _unpacked(program, [*program.values("-D", "--directory"), *passed])
    for name in (names or "").split():
        yield from touch_of(Word(name), Effect.READ)
    yield from examine_unknown_program(program)


def copies(program: Program) -> Seen:
    """Yield what a copy, a move or a link reads and writes."""
    sources, target = program.operands(), program.values("--target-directory")
    if program.name != "rsync":  # whose -t keeps the times
        target += program.values("-t")
    if program.name == "install" and program.has("-d"):
        yield from touch_all(sources, Effect.ALTER)
        return
    if program.name == "ln" and len(sources) == 1 and not target:
        target = [Word(".")]
    if not target:
        sources, target = sources[:-1], sources[-1:]
    taken = {"mv": Effect.REMOVE, "ln": Effect.ALTER}.get(program.name, Effect.READ)
    taken = Effect.REMOVE if program.has("--remove-source-files") else taken
    is_deep = program.name in ("rsync", "scp") or program.has("-r", "-R", "-a", "--recursive")
    for source in sources:
        for seen in touch_of(source, taken):
            yield replace(seen, is_deep=is_deep and taken is Effect.READ)
    if program.name in ("ln", "link"):
        yield from _linked(sources, target)
    names = _names_of_copies(program, sources)
    for folder in target:
        for name in names:
            yield from touch_of(folder, Effect.WRITE, name)
            if is_deep:
                yield from touch_of(folder, Effect.FILL, name)
        if not sources or program.has("--delete"):
            yield from touch_of(folder, Effect.REMOVE)


def _names_of_copies(program: Program, sources: Sequence[Word]) -> list[str]:
    """Return under which names sources come into a folder; empty for one whose content does."""
    is_rsync = program.name == "rsync"
    if is_rsync and program.has("--files-from", "-R", "--relative"):
        return [""]
    if program.has("-T", "--no-target-directory") and not is_rsync:
        return [""] * len(sources)
    texts = (source.text if is_rsync else source.text.rstrip("/") for source in sources)
    return [posixpath.basename(text) for text in texts]


def _linked(sources: Sequence[Word], targets: Sequence[Word]) -> Iterator[Touch]:
    """Yield what a link makes readable; a symbolic one is relative to its own place."""
    for source in sources:
        yield from touch_of(source, Effect.READ)
        for target in targets:
            if not source.text.startswith("/"):
                for folder in (target.text, posixpath.dirname(target.text)):
                    yield from touch_of(Word(posixpath.join(folder, source.text)), Effect.READ)


def _examine_make(program: Program) -> Seen:
    yield from touch_all(program.values("-f", "--file", "--makefile"), Effect.READ)
    yield from _may_be_written(input_of(program.command) or "")


def _may_be_written(*texts: str) -> Seen:
    """Yield that what a text in a language of its own names may be read, and written over."""
    for seen in chain.from_iterable(map(touch_named, texts)):
        yield seen
        yield Touch(seen.path, Effect.FILL)


def examine_language(program: Program) -> Seen:
    """A program with commands of its own, in its arguments or on its input."""
    texts = (*(word.text for word in program.arguments), input_of(program.command) or "")
    yield from _may_be_written(*texts)
    if any(".yolo-planning" in text for text in texts):
        yield Undecided(program.line)


def _examine_dd(program: Program) -> Seen:
    for word in program.arguments:
        name, _, value = word.marked.partition("=")
        if name in ("if", "of"):
            yield from touch_of(Word(value), Effect.WRITE if name == "of" else Effect.READ)


def _examine_grep(program: Program) -> Seen:
    yield from touch_all(program.values("-f", "--file"), Effect.READ)
    operands = program.operands()
    has_pattern = program.has("-e", "-f", "--regexp", "--file", "--files")
    is_deep = program.name in ("rg", "ag", "ack") or program.has("-r", "-R", "--recursive")
    is_chosen = program.has("--include", "-g", "--glob", "-t", "--type")
    for seen in touch_all(operands if has_pattern else operands[1:], Effect.READ):
        yield replace(seen, is_deep=is_deep and not is_chosen)
    yield from touch_all(program.values("--file"), Effect.READ)
    places = [word.text for word in (operands if has_pattern else operands[1:])] or [
        posixpath.curdir
    ]
    for chosen in program.values("--include", "-g", "--glob"):
        for place in places:
            yield from touch_chosen(place, chosen.text)


def _examine_sed(program: Program) -> Seen:
    operands, scripts = program.operands(), program.values("-e", "--expression")
    if not scripts and not program.has("-f", "--file"):
        scripts, operands = operands[:1], operands[1:]
    effect = Effect.WRITE if program.has("-i", "--in-place") else Effect.READ
    yield from touch_all(operands, effect)
    if any(word.text in _STANDARD_INPUT for word in program.values("-f", "--file")):
        scripts = [*scripts, Word(input_of(program.command) or "")]
    for script in scripts:
        yield from (Touch(path, Effect.WRITE) for path in _SCRIPT_WRITES.findall(script.text))
        yield from (Touch(path, Effect.FILL) for path in _SCRIPT_NAMES.findall(script.text))
        yield from _may_be_written(*_SCRIPT_READS.findall(script.text))
        if script.text.endswith("e"):  # what it puts in is run
            yield from _may_be_written(*script.text.split("/"))


_STANDARD_INPUT = ("-", "/dev/stdin")


def _examine_awk(program: Program) -> Seen:
    operands, scripts = program.operands(), []
    if any(word.text in _STANDARD_INPUT for word in program.values("-f")):
        scripts = [Word(input_of(program.command) or "")]
    elif not program.has("-f"):
        scripts, operands = operands[:1], operands[1:]
    for script in scripts:
        yield from (Touch(path, Effect.WRITE) for path in _AWK_WRITES.findall(script.text))
        quoted = _QUOTED.findall(script.text)
        if "system(" in script.text:
            yield Undecided(program.line)
        if "system(" in script.text or ("print" in script.text and re.search("[>|]", script.text)):
            given = (*program.values("-v"), *program.command.environment)
            texts = (word.text.partition("=")[2] for word in given)
            yield from _may_be_written(*quoted, "".join(quoted), *texts)
            if "ARGV" in script.text:
                yield from touch_all(operands, Effect.FILL)
        else:
            yield from chain.from_iterable(map(touch_named, quoted))
    effect = Effect.WRITE if "inplace" in program.line else Effect.READ
    yield from touch_all(operands, effect)


def _examine_jq(program: Program) -> Seen:
    operands = program.operands()
    effect = (
        Effect.WRITE if program.name == "yq" and program.has("-i", "--inplace") else Effect.READ
    )
    skipped = 0 if program.has("-f", "--from-file") else 1
    yield from touch_all(operands[skipped:], effect)


def _examine_patch(program: Program) -> Seen:
    yield from touch_all(program.operands()[:1], Effect.WRITE)
    yield from touch_patched(program)
    yield from _unpacked(program, program.values("-d", "--directory"))


def touch_patched(program: Program) -> Seen:
    """Yield the files that a patch changes which a program is given on its input."""
    for path in _PATCHED.findall(input_of(program.command) or ""):
        yield Touch(path, Effect.WRITE)


_PATCHED = re.compile(r"^(?:---|\+\+\+) (?:[ab]/)?([^\t\n]+)", re.MULTILINE)
"""Line of a patch that names a file, before or after the change."""


def _unpacked(program: Program, folders: Sequence[Word]) -> Seen:
    """Yield that anything in a folder may be written over. What is taken out by name is written."""
    folder = folders[-1] if folders else Word(".")
    yield from touch_of(folder, Effect.FILL)
    for word in program.operands():
        if ".yolo-planning" in word.text and word not in folders:
            yield from touch_of(Word(posixpath.join(folder.marked, word.marked)), Effect.WRITE)
    yield Undecided(program.line)


def _unpacks_elsewhere(program: Program) -> Seen:
    """`7z x -oFOLDER` and the like."""
    if any(word.text in ("x", "e") for word in program.arguments[:1]):
        folders = [word for word in program.operands()[1:] if word.text.endswith("/")]
        yield from _unpacked(program, [*folders, *program.values("-o")])
    else:
        yield from examine_unknown_program(program)


def _unpacks(program: Program) -> Seen:
    operands, archive = program.operands(), program.values("-f", "--file")
    yield from touch_all(program.values("-T", "--files-from"), Effect.READ)
    is_tar = program.name != "zip" and program.name != "unzip"
    if is_tar and not program.has("--create") and not _has_tar_mode(program, "c"):
        if not (program.has("--list") or _has_tar_mode(program, "t")):
            yield from _unpacked(program, program.values("-C", "--directory", "--cd", "--dir"))
        return
    if program.name == "unzip" and not program.has("-l"):
        yield from _unpacked(program, program.values("-d"))
    elif program.name == "zip":
        yield from touch_all(operands[:1], Effect.WRITE)
        yield from touch_deep(operands[1:])
    elif is_tar:
        bundled = (
            archive
            or (operands[1:2] if _has_tar_mode(program, "f") else [])
            or [word for word in operands if re.search(r"\.t?(?:ar|gz|xz|bz2|zst)", word.text)][:1]
        )
        yield from touch_all(bundled, Effect.WRITE)
        yield from touch_deep(word for word in operands if word not in bundled)


def _has_tar_mode(program: Program, mode: str) -> bool:
    modes = [word.text.removeprefix("-") for word in program.arguments[:1]]
    return any(mode in word and word.isascii() and word.isalpha() for word in modes)


def _examine_docker(program: Program) -> Seen:
    yield from touch_all(program.values("--env-file", "-f", "--file"), Effect.READ)
    if program.has("--volume", "--mount") or any(
        word.text.startswith("-v") for word in program.arguments
    ):
        yield Undecided(program.line)


def examine_unknown_program(program: Program) -> Seen:
    """An unknown program: its arguments are read, and written if an option says so."""
    writes = program.has("--write", "--fix", "--in-place", "--inplace")
    for at, word in enumerate(program.arguments):
        if posixpath.basename(word.text) in PROGRAM_NAMES:  # it may run what it is given
            ours = Program("yolo-fs", program.arguments[at + 1 :], program.command)
            yield from examine_own_verb(ours)
            break
    for word in program.arguments:
        if match := _FROM_FILE.search(word.marked):  # as in `curl -F field=@FILE;type=text/plain`
            yield from touch_of(Word(match[1]), Effect.READ)
    for word in program.operands():
        is_path = any(sign in word.text for sign in ("/", ".", UNKNOWN))
        if is_path and not re.search(r"\s", word.text):
            yield from touch_of(
                Word(word.marked.removeprefix("@")), Effect.ALTER if writes else Effect.READ
            )


def examine_own_verb(program: Program) -> Seen:
    """A verb of ours: what it reads and writes for whoever types it, and whose it is."""
    program = _with_verb_first(program)
    texts = [word.text for word in program.arguments[:_MOST_NAMES]]
    names = (" ".join(texts[:count]) for count in range(len(texts), 0, -1))
    row = next((OWN_VERB_BY_NAME[name] for name in names if name in OWN_VERB_BY_NAME), None)
    if row is None:
        if UNKNOWN in "".join(texts):
            yield Undecided(program.line)
        yield from examine_unknown_program(program)
        return
    behind = program.arguments[row.name.count(" ") + 1 :]
    given = Program("yolo-fs", tuple(_strip_flags(word) for word in behind), program.command)
    if row.is_limited_with(given.has):
        department = next((word.text for word in given.operands()), "")
        yield OwnUse(program.line, row, department)
    for word in given.values(*row.speaks_by):
        if UNKNOWN not in word.text:
            yield OwnUse(program.line, speaks_for=word.text)
    is_written = ALWAYS in row.operands_written_with or given.has(*row.operands_written_with)
    operands = [word for word in given.operands() if re.search(r"[./]", word.text) or is_written]
    folders = [Word(""), *given.values("-C")]
    for words, effect in (
        (given.values(*row.writes), Effect.WRITE),
        (given.values(*row.reads), Effect.READ),
        (operands, Effect.WRITE if is_written else Effect.READ),
    ):
        for word in words:
            for folder in folders:
                spelled = Word(posixpath.join(folder.marked, word.marked))
                yield from touch_of(spelled, effect)


_MOST_NAMES = 3
"""Words of the longest name of a verb."""


def _with_verb_first(program: Program) -> Program:
    """Return it with the options that stand before the name of its verb at the end."""
    words, at = program.arguments, 0
    while at < len(words) and words[at].text.startswith("-"):
        at += 2 if words[at].text == "-C" else 1
    return program._replace(arguments=(*words[at:], *words[:at]))


def _strip_flags(word: Word) -> Word:
    """Return `-oFILE` for `-qoFILE`."""
    return Word(re.sub(r"^-[qv]+(?=[oC])", "-", word.marked))


_FROM_FILE = re.compile(r"^(?:-[A-Za-z]|[^@]*=)?[@<]([^;]+)")

PROGRAMS = key_by_name(
    {
        _WITHOUT_FILES: touches_nothing,
        "rm rmdir unlink shred rimraf trash": _removes,
        "gzip gunzip bzip2 xz zstd": _compresses,
        "mkdir setfacl setfattr xattr strip black isort dos2unix unix2dos rustfmt": _alters,
        "chmod chown chgrp chattr": _alters_rest,
        "cp mv ln install rsync link scp": copies,
        "dd": _examine_dd,
        "patch": _examine_patch,
        "tar bsdtar gtar jar zip unzip": _unpacks,
        "7z 7za 7zr unrar": _unpacks_elsewhere,
        "grep egrep fgrep rg ag ack": _examine_grep,
        "sed": _examine_sed,
        "awk gawk mawk": _examine_awk,
        "jq yq": _examine_jq,
        "yolo-fs": examine_own_verb,
        "make gmake": _examine_make,
        "cpio bsdcpio pax": _examine_list_reader,
        _WITH_LISTS: _reads_lists,
        RUNS_ELSEWHERE: _runs_elsewhere,
        "ssh": _examine_ssh,
        "docker podman": _examine_docker,
    }
)
"""Ordinary programs that are known; git has a module of its own."""


def examine_program(program: Program) -> Seen:
    """Yield what a program touches that is no shell, no interpreter and not git."""
    yield from PROGRAMS.get(program.name, examine_unknown_program)(program)
    yield from find_outputs(program)
