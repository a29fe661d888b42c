"""Files that a shell command or a patch reads and changes, as far as its text tells. Pure.

A shell can hide anything. This finds what agents write in good faith and reports what it cannot
decide; the daemon and `verify` judge what a command leaves behind.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from yolo_fs.hooks.code_touches import examine_interpreter
from yolo_fs.hooks.effects import (
    Destruction,
    Effect,
    NewTree,
    OneSeen,
    OwnUse,
    Seen,
    Touch,
    Unchecked,
    Undecided,
    names_in,
    touch_all,
    touch_named,
    touch_of,
)
from yolo_fs.hooks.git_touches import of_git
from yolo_fs.hooks.program import RUNNERS, Program, input_of, key_by_name, touch_options
from yolo_fs.hooks.program_touches import (
    PROGRAMS,
    READS_NOTHING,
    RUNS_ELSEWHERE,
    WITH_LANGUAGE,
    WITHOUT_OPTIONS,
    examine_language,
    examine_program,
    examine_unknown_program,
)
from yolo_fs.hooks.shell import (
    UNKNOWN,
    Allowance,
    SimpleCommand,
    TooMuchError,
    Word,
    simple_commands,
)
from yolo_fs.protocol.verbs import PROGRAM_NAMES


class CommandReading(NamedTuple):
    """What can be read from the text of a command."""

    touches: tuple[Touch, ...] = ()
    undecided: tuple[str, ...] = ()
    """Parts of the command whose effect only execution would show."""
    unchecked: tuple[str, ...] = ()
    """git commands that skip the hooks of the repository."""
    destructions: tuple[Destruction, ...] = ()
    """Commands that may destroy uncommitted content."""
    own: tuple[OwnUse, ...] = ()
    """Commands of ours that not every agent may use."""
    excess: str = ""
    """Why it is too large to be judged in time; empty for an ordinary command."""


PATCHED_FILE = re.compile(
    r"^[ \t]*\*\*\* (?:Add File|Update File|Delete File|Move to): ([^\n]+)$", re.MULTILINE
)
"""Line of a patch that names the file of the lines below it."""
MOST_CHARS = 64 * 1024
"""Longest command that is judged completely, characters."""
MOST_TOUCHES = 1_000
"""Most files of a command that is judged completely; each kind of access counts."""
_MOST_EXPANDED = 1 << 20
"""Characters that the words of such a command, and of all that it runs, may expand to."""
_COSTS = 32
"""What one item costs besides its characters."""


_NAMES_SPEAKER = re.compile(r"\bYOLO_FS_(?:AGENT|ROLE)=[\"']?([\w:-]{1,80})")
"""Variables by which our verbs and git hooks know who acts."""


def read_command(command: str, variables: Mapping[str, str] | None = None) -> CommandReading:
    """Return what a command, or a patch, touches. `variables`: known variables of the shell."""
    named = (path.rstrip(" \t\r") for path in PATCHED_FILE.findall(command))
    patched = [Touch(path, Effect.WRITE) for path in named if path]
    if command.lstrip().startswith("*** Begin Patch"):
        touched = tuple(dict.fromkeys(patched))
        return CommandReading(touched, excess=_describe_excess(touches=len(touched)))
    seen, excess = _read_text(command, dict(variables or {}))
    if "GIT_CONFIG_" in command and "core.hookspath" in command.lower():
        seen.append(Unchecked("git with core.hooksPath in its environment"))
    for match in _NAMES_SPEAKER.finditer(command):
        seen.append(OwnUse(match[0], speaks_for=match[1]))
    touches = list(dict.fromkeys((*patched, *(each for each in seen if isinstance(each, Touch)))))
    trees = (posixpath.normpath(each.path) for each in seen if isinstance(each, NewTree))
    touches += [inside for tree in trees for each in touches for inside in _in_tree(each, tree)]
    excess = excess or _describe_excess(len(command), len(touches))
    undecided = [part.what for part in seen if isinstance(part, Undecided)]
    reads = [touch.path for touch in touches if not touch.writes]
    if UNKNOWN in "".join((*reads, *undecided)):  # a name that is put together is made of words
        touches += (Touch(f"{UNKNOWN}/{name}", Effect.READ) for name in names_in(command))
    if any(touch.path == UNKNOWN for touch in touches if touch.writes):  # as `set -- FILE; rm $1`
        known = {touch.path for touch in touches}
        named = (name for name in names_in(command) if ".yolo-planning" in name)
        touches += (Touch(path, Effect.FILL) for path in named if path not in known)
    undecided += [touch.path for touch in touches if touch.writes and not touch.is_certain]
    unchecked = [part.what for part in seen if isinstance(part, Unchecked)]
    destructions = tuple(part for part in seen if isinstance(part, Destruction))
    own = tuple(part for part in seen if isinstance(part, OwnUse))
    doubts = tuple(dict.fromkeys(undecided))
    return CommandReading(tuple(touches), doubts, tuple(unchecked), destructions, own, excess)


def _read_text(command: str, variables: Mapping[str, str]) -> tuple[list[OneSeen], str]:
    """Return what was found, and why that is incomplete."""
    allowance = Allowance(max(_MOST_EXPANDED, 16 * len(command)))
    seen: list[OneSeen] = []
    try:
        for each in _examine_text(command, _Look(variables, allowance)):
            seen.append(each)
            allowance.take(len(each.path if isinstance(each, Touch | NewTree) else each.what))
            allowance.take(_COSTS)
    except RecursionError:
        return seen, "it is nested too deeply"
    except TooMuchError:
        return seen, "its expansion has no end"
    return seen, ""


def _describe_excess(chars: int = 0, touches: int = 0) -> str:
    if chars > MOST_CHARS:
        return f"it has {chars:,} characters, and at most {MOST_CHARS:,} are read"
    if touches > MOST_TOUCHES:
        return f"it touches {touches:,} files, and at most {MOST_TOUCHES:,} are looked at"
    return ""


def _in_tree(touch: Touch, tree: str) -> Iterator[Touch]:
    """Yield what a touch in a new work tree would be in the one that is there."""
    path = posixpath.normpath(touch.path)
    if path.startswith(f"{tree}/"):
        yield replace(touch, path=path.removeprefix(f"{tree}/"), or_below_root=True)


class _Look(NamedTuple):
    """Context in which a text is read."""

    variables: Mapping[str, str]
    allowance: Allowance
    depth: int = 0
    """Number of shells around it."""


_MOST_NESTED = 4
"""Depth to which nested shells are examined."""


def _examine_text(text: str, look: _Look) -> Seen:
    for command in simple_commands(text, look.variables, look.allowance):
        inner = look._replace(variables={**look.variables, "PWD": command.folder})
        yield from _below(command.folder, _examine_redirections(command))
        entered = posixpath.join(command.folder, _folder_entered(command))
        yield from _below(entered, _examine_program(command, inner))


def _below(folder: str, seen: Seen) -> Seen:
    for each in seen:
        if isinstance(each, Touch | NewTree):
            each = replace(each, path=posixpath.join(folder, each.path))
        elif isinstance(each, Destruction):
            each = each.below(folder)
        yield each


def _folder_entered(command: SimpleCommand) -> str:
    """Return where a program runs, as an option says of what runs it: `env -C FOLDER`."""
    folder = ""
    for name, own in _runners(command):
        for word in own.values(*RUNNERS[name].folder.split()):
            folder = posixpath.join(folder, word.text)
    return folder


def _examine_redirections(command: SimpleCommand) -> Iterator[Touch]:
    for operator, word in command.redirections:
        yield from touch_of(word, Effect.WRITE if ">" in operator else Effect.READ)


def _examine_program(command: SimpleCommand, look: _Look) -> Seen:
    yield from chain.from_iterable(touch_named(word.text) for word in command.environment)
    yield from _examine_runners(command)
    if (text := _split_by_env(command)) is not None:
        yield from _examine_shell(Program("eval", (Word(text),), command), look)
        return
    program = Program.of(command)
    if program is None:
        return
    if program.name not in WITHOUT_OPTIONS:
        yield from touch_options(program)
    if program.name in WITH_LANGUAGE:
        yield from examine_language(program)
    yield from _examine_given_texts(program, look)
    if re.search(r"\s", program.name):  # as in `flock FILE -c 'TEXT'` and `watch 'TEXT'`
        text = " ".join((program.name, *(word.text for word in program.arguments)))
        yield from _examine_shell(Program("eval", (Word(text),), command), look)
    elif program.name in _SOURCES and any(
        re.match(r"/dev/(?:fd|stdin)", word.text) for word in program.arguments
    ):
        yield Undecided(program.line)
        yield from _examine_shell(program, look)
    elif program.name in _SHELLS or program.name in _RUN_TEXT:
        yield from _examine_shell(program, look)
    elif _INTERPRETERS.fullmatch(program.name):
        yield from examine_interpreter(program)
    elif program.name in ("find", "fd"):
        yield from _examine_find(program, look)
    elif UNKNOWN in program.name:
        yield Undecided(program.line)
        yield from examine_unknown_program(program)
    elif program.name == "git":
        yield from of_git(program)
    else:
        yield from examine_program(program)
        if program.name not in _KNOWN:
            yield from _examine_program_within(program, look)


_KNOWN = frozenset(PROGRAMS) - frozenset(RUNS_ELSEWHERE.split())
_NAMES_OF_SUBCOMMANDS = """
    install link make rename time jar zip trash strip file ssh docker date
"""
_CHANGES = (
    (frozenset(PROGRAMS) | {"tee", "touch", "truncate", "sponge", "sh", "bash", "zsh"})
    - READS_NOTHING.difference(("rm", "rmdir", "unlink", "mv", "ln", "chmod", "chown", "touch"))
    - frozenset((*_NAMES_OF_SUBCOMMANDS.split(), *PROGRAM_NAMES))
)
"""Programs that change files, by names that are no subcommands of others."""


def _examine_program_within(program: Program, look: _Look) -> Seen:
    """An unknown program may run the one that is named in its arguments: `unshare -r rm FILE`."""
    for at, word in enumerate(program.arguments):
        if posixpath.basename(word.text) in _CHANGES:
            words = program.arguments[at:]
            yield from _examine_program(replace(program.command, words=words, environment=()), look)
            return


def _examine_given_texts(program: Program, look: _Look) -> Seen:
    """Commands in options and variables that a program gives to a shell."""
    texts = [word.text for word in program.values(*_RUN_OPTIONS.get(program.name, "").split())]
    if program.name == "git":
        texts = [text.partition("=")[2] if "=" in text else text for text in texts]
        texts = [text[1:] if text.startswith("!") else f"git {text}" for text in texts] + texts
        verbs = [word.text for word in program.arguments[:2]]
        if verbs in (["bisect", "run"], ["submodule", "foreach"]):
            texts.append(" ".join(word.text for word in program.arguments[2:]))
    for word in program.command.environment:
        name, _, value = word.text.partition("=")
        if _RUN_VARIABLES.search(name):
            texts.append(value.lstrip("|"))
        elif _WRITE_VARIABLES.search(name):
            yield Touch(value, Effect.FILL)
    for text in texts:
        if re.search(r"\s", text) and look.depth < _MOST_NESTED:
            yield from _examine_text(text, look._replace(depth=look.depth + 1))


_RUN_OPTIONS = key_by_name(
    {
        "git": "-c -x --exec --extcmd -O --open-files-in-pager --tree-filter --index-filter"
        " --env-filter --msg-filter --commit-filter --upload-pack --receive-pack",
        "just": "--command -c",
        "npx npm": "-c --call",
        "tar bsdtar gtar": "--to-command -I --use-compress-program --checkpoint-action",
        "rsync": "-e --rsh",
        "split": "--filter",
        "mapfile readarray": "-C",
    }
)
"""Options whose value is run."""
_RUN_VARIABLES = re.compile(
    r"(?:EDITOR|PAGER|VISUAL|BROWSER|COMMAND|_DIFF|LESSOPEN|LESSCLOSE|_SSH)$"
)
"""Names of variables whose value is run."""
_WRITE_VARIABLES = re.compile(r"TRACE|_INDEX_FILE$|HISTFILE$|COVERAGE_FILE$|_LOG$")
"""Names of variables whose value is a file that is written."""


def _runners(command: SimpleCommand) -> Iterator[tuple[str, Program]]:
    """Yield the programs that run the program of a command, each with its own arguments."""
    words, at, behind = command.words, 0, 0
    while at < len(words) and (name := posixpath.basename(words[at].text)) in RUNNERS:
        if not RUNNERS[name].runs(words, at + 1):
            return
        behind = RUNNERS[name].find_program(words, at + 1)
        yield name, Program(name, words[at + 1 : behind], command)
        at = behind


def _examine_runners(command: SimpleCommand) -> Iterator[Touch]:
    """Yield what the programs touch that run the program of a command."""
    words = command.words
    for _, own in _runners(command):
        for word in own.arguments:
            if re.match(r"\w+=", word.text):
                yield from touch_named(word.text)
        if own.name in ("xargs", "parallel"):
            yield from touch_all(own.values("-a", "--arg-file"), Effect.READ)
        elif own.name in ("time", "strace"):
            yield from touch_all(own.values("-o", "--output"), Effect.WRITE)
        if own.name == "parallel":
            lists = [word.text in ("::::", "::::+") for word in words]
            given = words[lists.index(True) :] if True in lists else ()
            yield from touch_all([word for word in given if ":" not in word.text], Effect.READ)
            yield from touch_all(own.values("--joblog", "--results"), Effect.FILL)


def _split_by_env(command: SimpleCommand) -> str | None:
    """Return what `env -S TEXT` runs; None if there is none."""
    names = [posixpath.basename(word.text) for word in command.words]
    if "env" not in names:
        return None
    for at in range(names.index("env") + 1, len(names)):
        word = command.words[at].text
        if match := _SPLITS.match(word):
            rest = [each.text for each in command.words[at + 1 :]]
            return " ".join((word[match.end() :], *rest))
        if not word.startswith("-") and not re.match(r"\w+=", word):
            return None
    return None


_SPLITS = re.compile(r"-[iv0]*S|--split-string=?")

_NAMES_OF_SHELLS = "sh bash zsh dash ksh fish ash csh tcsh mksh rbash xonsh nu pwsh"
_SHELLS = frozenset(_NAMES_OF_SHELLS.split())
_RUN_TEXT = frozenset(
    ("eval", "trap", "su", "script", "alias", "hyperfine", "at", "batch", "crontab")
)
_SOURCES = frozenset(("source", "."))
_INTERPRETERS = re.compile(r"(?:python|pypy)[0-9.]*|node|perl|ruby|deno|bun|php|lua|tsx|ts-node")


_IS_TEXT = re.compile(r"[\s;&|>]")
"""What no word has that is only a name or a path."""


def _examine_shell(program: Program, look: _Look) -> Seen:
    """Read the text given to a shell; input from a file or a pipe is undecided."""
    texts = [word.text for word in program.arguments if _IS_TEXT.search(word.text)]
    if program.name == "eval":
        texts = [" ".join(word.text for word in program.arguments)]
    if (given_in := input_of(program.command)) is not None:
        texts.append(given_in)
    if program.name == "alias":
        texts = [word.text.partition("=")[2] for word in program.arguments]
    for text in texts:
        if UNKNOWN in text or look.depth == _MOST_NESTED:
            yield Undecided(program.line)
        if look.depth < _MOST_NESTED:
            yield from _examine_text(text, look._replace(depth=look.depth + 1))
    if program.name == "script":
        yield from touch_all(program.operands(), Effect.WRITE)
        logs = "-O -B -I -T --log-out --log-io --log-timing --log-in"
        yield from touch_all(program.values(*logs.split()), Effect.FILL)
    if program.name in _SHELLS:
        for word in program.arguments:
            if not _IS_TEXT.search(word.text) and re.search(r"[./]", word.text):
                # a script is read, too
                yield from touch_of(word, Effect.READ, must_exist=True)
        if not texts and not program.has("--version", "-n"):
            yield Undecided(program.line)


def _examine_find(program: Program, look: _Look) -> Seen:
    """`find` with `-delete` or `-exec`: files of the planning tree that may match are judged."""
    texts = [word.text for word in program.arguments]
    actions = [at for at, text in enumerate(texts) if text in _FIND_RUNS]
    ends = [at for at, text in enumerate(texts) if text in (*_FIND_RUNS, ";", "+")]
    ends.append(len(texts))
    written = program.values("-fprint", "-fprint0", "-fls", "-fprintf")
    yield from touch_all(written, Effect.WRITE)
    roots = []
    for word in program.arguments:
        if word.text.startswith(("-", "(", "!")):
            break
        roots.append(word)
    names = [*program.values("-name"), *program.values("-iname")]
    if program.name == "fd":  # whose pattern comes first
        before = program.arguments[: actions[0]] if actions else program.arguments
        names, roots = [], [word for word in before if not word.text.startswith("-")][1:]
    effects = {Effect.REMOVE} if "-delete" in texts else set()
    reads = False
    is_bare = not names  # then only what is asked for by name is looked at
    for at in actions:
        end = ends[bisect_right(ends, at)]
        words = tuple(
            Word(UNKNOWN) if "{}" in word.text else word for word in program.arguments[at + 1 : end]
        )
        if program.name == "fd" and Word(UNKNOWN) not in words:
            words += (Word(UNKNOWN),)
        inner = replace(program.command, words=words, redirections=())
        run = Program.of(inner)
        reads = reads or (run is not None and run.name not in READS_NOTHING)
        for seen in _examine_program(inner, look):
            if isinstance(seen, Touch) and not seen.is_certain:
                effects.update({seen.effect} - {Effect.READ})
            else:
                yield seen
    if reads:
        for root in roots or [Word(".")]:
            for name in names or [Word("*")]:
                if is_bare and _planning_tree_below(root.text) != root.text:
                    continue
                for between in ("", "*", "*/*"):
                    path = posixpath.join(root.text, between, name.text)
                    yield Touch(path, Effect.READ, is_pattern=True)
                path = posixpath.join(_planning_tree_below(root.text), "**", name.text)
                yield Touch(path, Effect.READ, is_pattern=True)
    for effect in sorted(effects):
        for root in roots or [Word(".")]:
            for name in names or [Word("*")]:
                path = posixpath.join(_planning_tree_below(root.text), "**", name.text)
                yield Touch(path, effect, is_pattern=True, must_exist=True)
    if effects:
        yield Undecided(program.line)


_FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X")


def _planning_tree_below(root: str) -> str:
    return root if ".yolo-planning" in root else posixpath.join(root, ".yolo-planning")
