"""Files that a shell command or a patch reads and changes, as far as its text tells. Pure.

A shell can hide anything. This finds what agents write in good faith and reports what it cannot
decide; the daemon and `verify` judge what a command leaves behind.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, pairwise, takewhile
from typing import NamedTuple, TypeVar

from yolo_fs.hooks.shell import (
    UNKNOWN,
    Allowance,
    SimpleCommand,
    TooMuchError,
    Word,
    simple_commands,
)
from yolo_fs.protocol.departments import Role
from yolo_fs.protocol.verbs import ALWAYS, OWN_VERB_BY_NAME, PROGRAM_NAMES, Whose


class Effect(StrEnum):
    """Effect on a file."""

    READ = "read"
    WRITE = "write"
    REMOVE = "remove"
    """It is removed, with everything below it if it is a folder."""
    ALTER = "alter"
    """Its mode, time or layout changes, or a folder is made.
    This is forbidden only for files that a command maintains.
    """


class Staged(StrEnum):
    """How git takes files into the index."""

    UNIGNORED = "unignored"
    """A folder stands for the new files in it that git does not ignore."""
    FORCED = "forced"
    """A folder stands for all new files in it."""


@dataclass(frozen=True, slots=True)
class Touch:
    """One file that is read or changed."""

    path: str
    """As spelled, relative to where the command starts; may contain `UNKNOWN`."""
    effect: Effect
    is_pattern: bool = False
    """Whether `path` is a pattern of `glob`."""
    name_in_folder: str = ""
    """Name of the file if `path` turns out to be a folder, as with `cp`."""
    must_exist: bool = False
    """Whether it only counts if there is such a file: `git checkout x` may name a branch."""
    or_below_root: bool = False
    """Whether it may also be relative to the root."""
    is_deep: bool = False
    """Whether everything below a folder is included."""
    is_named: bool = False
    """Whether it is only named to a program, which reads it if it wants: what is installed or
    generated does not count."""
    staged: Staged | None = None
    """Whether git takes it into the index, and then keeps and publishes what it holds."""

    @property
    def writes(self) -> bool:
        """Whether it does more than read."""
        return self.effect is not Effect.READ

    @property
    def is_certain(self) -> bool:
        """Whether the whole path is known."""
        return UNKNOWN not in self.path


@dataclass(frozen=True, slots=True)
class Destruction:
    """A command that may destroy uncommitted content."""

    what: str
    """The command, for messages."""
    paths: tuple[str, ...] = ()
    """What it names, relative to where the command begins; empty for the whole work tree."""
    tracked: bool = True
    """Whether it discards changes of tracked files."""
    untracked: bool = False
    """Whether it removes untracked files."""

    def below(self, folder: str) -> Destruction:
        """Return it with paths relative to the folder above."""
        return replace(self, paths=tuple(posixpath.join(folder, path) for path in self.paths))


@dataclass(frozen=True, slots=True)
class OwnUse:
    """A command of ours that not every agent may use."""

    what: str
    """The command, for messages."""
    whose: Whose
    department: str = ""
    """The department that it names."""
    roles: tuple[Role, ...] = ()
    """Roles that may use it, if it is restricted to some."""
    speaks_for: str = ""
    """The agent in whose name it acts, if it names one."""


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
    named = (path.rstrip(" \t\r") for path in _PATCHED.findall(command))
    patched = [Touch(path, Effect.WRITE) for path in named if path]
    if command.lstrip().startswith("*** Begin Patch"):
        touched = tuple(dict.fromkeys(patched))
        return CommandReading(touched, excess=_describe_excess(touches=len(touched)))
    seen, excess = _read_text(command, dict(variables or {}))
    if "GIT_CONFIG_" in command and "core.hookspath" in command.lower():
        seen.append(_Unchecked("git with core.hooksPath in its environment"))
    for match in _NAMES_SPEAKER.finditer(command):
        seen.append(OwnUse(match[0], Whose.ANYBODY, speaks_for=match[1]))
    touches = list(dict.fromkeys((*patched, *(each for each in seen if isinstance(each, Touch)))))
    trees = (posixpath.normpath(each.path) for each in seen if isinstance(each, _NewTree))
    touches += [inside for tree in trees for each in touches for inside in _in_tree(each, tree)]
    excess = excess or _describe_excess(len(command), len(touches))
    undecided = [part.what for part in seen if isinstance(part, _Undecided)]
    reads = [touch.path for touch in touches if not touch.writes]
    if UNKNOWN in "".join((*reads, *undecided)):  # a name that is put together is made of words
        touches += (Touch(f"{UNKNOWN}/{name}", Effect.READ) for name in _names_in(command))
    undecided += [touch.path for touch in touches if touch.writes and not touch.is_certain]
    unchecked = [part.what for part in seen if isinstance(part, _Unchecked)]
    destructions = tuple(part for part in seen if isinstance(part, Destruction))
    own = tuple(part for part in seen if isinstance(part, OwnUse))
    doubts = tuple(dict.fromkeys(undecided))
    return CommandReading(tuple(touches), doubts, tuple(unchecked), destructions, own, excess)


def _read_text(command: str, variables: Mapping[str, str]) -> tuple[list[_OneSeen], str]:
    """Return what was found, and why that is incomplete."""
    allowance = Allowance(max(_MOST_EXPANDED, 16 * len(command)))
    seen: list[_OneSeen] = []
    try:
        for each in _examine_text(command, _Look(variables, allowance)):
            seen.append(each)
            allowance.take(len(each.path if isinstance(each, Touch | _NewTree) else each.what))
            allowance.take(_COSTS)
    except RecursionError:
        return seen, "it is nested too deeply"
    except TooMuchError:
        return seen, "what it comes to, once its variables and lists are put in, has no end"
    return seen, ""


def _describe_excess(chars: int = 0, touches: int = 0) -> str:
    if chars > MOST_CHARS:
        return f"it has {chars:,} characters, and at most {MOST_CHARS:,} are read"
    if touches > MOST_TOUCHES:
        return f"it touches {touches:,} files, and at most {MOST_TOUCHES:,} are looked at"
    return ""


@dataclass(frozen=True, slots=True)
class _Undecided:
    what: str


@dataclass(frozen=True, slots=True)
class _Unchecked:
    what: str


@dataclass(frozen=True, slots=True)
class _NewTree:
    """A work tree that the command makes: the files in it are those of the repository."""

    path: str


def _in_tree(touch: Touch, tree: str) -> Iterator[Touch]:
    """Yield what a touch in a new work tree would be in the one that is there."""
    path = posixpath.normpath(touch.path)
    if path.startswith(f"{tree}/"):
        yield replace(touch, path=path.removeprefix(f"{tree}/"), or_below_root=True)


_Row = TypeVar("_Row")
_OneSeen = Touch | _NewTree | _Undecided | _Unchecked | Destruction | OwnUse
_Seen = Iterator[_OneSeen]


class _Look(NamedTuple):
    """Context in which a text is read."""

    variables: Mapping[str, str]
    allowance: Allowance
    depth: int = 0
    """Number of shells around it."""


_MOST_NESTED = 4
"""Depth to which nested shells are examined."""
_PATCHED = re.compile(
    r"^[ \t]*\*\*\* (?:Add File|Update File|Delete File|Move to): ([^\n]+)$", re.MULTILINE
)
_PATHSPEC_MAGIC = re.compile(r":(?:\([a-z,]*\)|/)")
_SCRIPT_WRITES = re.compile(r"(?:^|[;/}\d\s])w\s+([^\s;}]+)")
"""The command `w FILE` of sed."""
_SCRIPT_READS = re.compile(r"(?:^|[;/}\d\s])[rRe]\s+([^;}\n]+)")
"""The commands `r FILE` and `R FILE` of sed, and `e COMMAND`."""
_QUOTED = re.compile(r"\"([^\"]+)\"")
_AWK_WRITES = re.compile(r">>?\s*\"([^\"]+)\"")
_CODE_PATH = re.compile(
    r"(?<![\w./~-])[\w./~-]*\.yolo-planning[\w./*-]*|(?<![\w./-])(?:[\w./-]*HANDOFF\.md"
    r"|[\w./-]*\.(?:dept|handoff|escalation)-[\w.*-]+|(?!/)[\w./-]*state\.json)"
)
_CODE_LITERAL = re.compile(r"""(["'`])([^"'`\s\\]+)\1""")
_CODE_FOLDER = re.compile(r"\.yolo-planning(?:/[\w-]+)*/?\Z")
_CODE_WRITES = re.compile(
    r"""open\((?:(?!open\()[^)])*(?:,\s*(?:mode\s*=\s*)?['"][rb]*[wax]|['"]>)|Mode\.WRITE
    |\.(?:write_text|write_bytes|unlink|rmtree|touch|rename|symlink_to|hardlink_to|truncate)\(
    |\b(?:os|shutil|fs|fsp|promises|File|FileUtils|Deno|Bun)\.(?:promises\.)?
     (?:remove|unlink|rename|replace|copy|move|rm|cp|mv|write|append|truncate|delete|create|symlink
     |link)
    |\b(?:writeFile|appendFile|writeFileSync|unlinkSync|rmSync)\b
    |\b(?:dump|unlink|file_put_contents)\s*\(?""",
    re.VERBOSE,
)
_CODE_OPTION = re.compile(r"-[A-Za-z]*[ceEpr]|--eval|--print")
_CODE_RUNS = re.compile(
    r"\b(?:exec|eval|system|popen|subprocess|spawn\w*|child_process|b64decode)\b|`"
)


def _examine_text(text: str, look: _Look) -> _Seen:
    for command in simple_commands(text, look.variables, look.allowance):
        inner = look._replace(variables={**look.variables, "PWD": command.folder})
        for seen in chain(_examine_redirections(command), _examine_program(command, inner)):
            if isinstance(seen, Touch | _NewTree):
                seen = replace(seen, path=posixpath.join(command.folder, seen.path))
            elif isinstance(seen, Destruction):
                seen = seen.below(command.folder)
            yield seen


def _examine_redirections(command: SimpleCommand) -> Iterator[Touch]:
    for operator, word in command.redirections:
        yield from _touch(word, Effect.WRITE if ">" in operator else Effect.READ)


def _examine_program(command: SimpleCommand, look: _Look) -> _Seen:
    yield from chain.from_iterable(_touch_named(word.text) for word in command.environment)
    yield from _examine_runners(command)
    if (text := _split_by_env(command)) is not None:
        yield from _examine_shell(_Program("eval", (Word(text),), command), look)
        return
    program = _Program.of(command)
    if program is None:
        return
    if program.name not in _WITHOUT_OPTIONS:
        yield from _touch_options(program)
    if program.name in _WITH_LANGUAGE:
        texts = (*(word.text for word in program.arguments), command.text_in or "")
        yield from chain.from_iterable(map(_touch_named, texts))
    if re.search(r"\s", program.name):  # as in `flock FILE -c 'TEXT'` and `watch 'TEXT'`
        text = " ".join((program.name, *(word.text for word in program.arguments)))
        yield from _examine_shell(_Program("eval", (Word(text),), command), look)
    elif program.name in _SHELLS or program.name in _RUN_TEXT:
        yield from _examine_shell(program, look)
    elif _INTERPRETERS.fullmatch(program.name):
        yield from _examine_interpreter(program)
    elif program.name in ("find", "fd"):
        yield from _examine_find(program, look)
    elif UNKNOWN in program.name:
        yield _Undecided(program.line)
        yield from _examine_unknown_program(program)
    else:
        yield from _PROGRAMS.get(program.name, _examine_unknown_program)(program)


_NAME = re.compile(r"[^\s=:,;|&<>()\[\]{}'\"`@!\\]+")


def _names_in(text: str) -> Iterator[str]:
    """Yield the words of a text that may name a file, relative to a folder."""
    for name in dict.fromkeys(_NAME.findall(text)):
        if "." in name or "/" in name:
            yield re.sub(r"^[-+?#%]*(?:\.{1,2}/)+|^[-+?#%]+", "", name)


def _touch_named(text: str) -> Iterator[Touch]:
    """Yield the files that are there by the words of a text, such as `--require ./FILE`."""
    for name in dict.fromkeys(_NAME.findall(text)):
        if "." in name or "/" in name:
            name = re.sub(r"^~[+-]/", "", name)
            yield Touch(name, Effect.READ, must_exist=True, is_named=True)


def _touch_options(program: _Program) -> Iterator[Touch]:
    """Yield the files that are there by the names of options' values, with or without a blank."""
    valued = _VALUED.get(program.name, "").split()
    for before, word in pairwise((Word(""), *program.arguments)):
        if before.text in valued and before.text not in _TAKE_TEXT:
            yield from _touch_named(word.text)
        elif word.text.startswith("-"):
            yield from _touch_named(word.text[2:])


_TAKE_TEXT = ("-e", "--expression", "--regexp")
"""Options whose value is a pattern or a script."""


def _examine_runners(command: SimpleCommand) -> Iterator[Touch]:
    """Yield what the programs touch that run the program of a command."""
    words, at, behind = command.words, 0, 0
    while at < len(words) and (runner := _RUNNERS.get(posixpath.basename(words[at].text))):
        behind = runner.behind(words, at + 1)
        own = _Program(posixpath.basename(words[at].text), words[at + 1 : behind], command)
        for word in own.arguments:
            if re.match(r"\w+=", word.text):
                yield from _touch_named(word.text)
        if own.name in ("xargs", "parallel"):
            yield from _touch_all(own.values("-a", "--arg-file"), Effect.READ)
        elif own.name in ("time", "strace"):
            yield from _touch_all(own.values("-o", "--output"), Effect.WRITE)
        if own.name == "parallel":
            lists = [word.text in ("::::", "::::+") for word in words]
            given = words[lists.index(True) :] if True in lists else ()
            yield from _touch_all([word for word in given if ":" not in word.text], Effect.READ)
        at = behind


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


class _Program(NamedTuple):
    """A program and its arguments, without wrappers such as `sudo` or `xargs`."""

    name: str
    arguments: tuple[Word, ...]
    command: SimpleCommand

    @classmethod
    def of(cls, command: SimpleCommand) -> _Program | None:
        words, at = command.words, 0
        takes_input = False
        while at < len(words):
            name = posixpath.basename(words[at].text)
            runner = _RUNNERS.get(name)
            only_asks = name == "command" and [word.text for word in words[at + 1 : at + 2]] in (
                ["-v"],
                ["-V"],
            )
            if runner is None or only_asks:
                break
            at = runner.behind(words, at + 1)
            takes_input = takes_input or name in ("xargs", "parallel")
        if at >= len(words):
            return None
        text = words[at].text
        name = text if re.search(r"\s", text) else posixpath.basename(text)
        given = [Word(text) for text in (command.text_in or UNKNOWN).split()] if takes_input else ()
        return cls(name, (*words[at + 1 :], *given), command)

    @property
    def line(self) -> str:
        """The command line of the program, for messages."""
        return " ".join((self.name, *(word.text for word in self.arguments)))[:80]

    def has(self, *options: str) -> bool:
        """Whether one of the options is given; short ones may be in a group."""
        for word in self.arguments:
            text = word.text
            for option in options:
                is_short = len(option) == 2 and re.match(r"-[A-Za-z]", text)
                if text.partition("=")[0] == option or (
                    is_short and option[1] in text[1:].partition("=")[0]
                ):
                    return True
        return False

    def operands(self) -> list[Word]:
        """Return the arguments that are neither options nor their values."""
        valued = _VALUED.get(self.name, "").split()
        operands: list[Word] = []
        words = iter(self.arguments)
        for word in words:
            if word.text == "--":
                return [*operands, *words]
            if word.text.startswith("-") and word.text != "-":
                if word.text in valued:
                    next(words, None)
            elif word.text:
                operands.append(word)
        return operands

    def values(self, *options: str) -> list[Word]:
        """Return the values of options, as in `-o FILE`, `-oFILE`, `--out FILE`, `--out=FILE`."""
        values: list[Word] = []
        for at, word in enumerate(self.arguments):
            for option in options:
                if word.text == option:
                    values += self.arguments[at + 1 : at + 2]
                elif option.startswith("--") and word.text.startswith(f"{option}="):
                    values.append(Word(word.marked.partition("=")[2]))
                elif len(option) == 2 and word.text.startswith(option):
                    values.append(Word(word.marked[2:]))
        return values


class _Runner(NamedTuple):
    """A program that runs another one, named in its arguments."""

    valued: str = ""
    """Its options that take a value."""
    skips: int = 0
    """Number of its own operands before that program."""
    words: str = ""
    """The subcommands that run a program; empty when it has no subcommands."""

    def behind(self, words: Sequence[Word], at: int) -> int:
        """Return the index of the program that it runs; `at`: where its own arguments begin."""
        if self.words and (at >= len(words) or words[at].text not in self.words.split()):
            return len(words)
        at += 1 if self.words else 0
        skips = self.skips
        while at < len(words):
            text = words[at].text
            if text.startswith("-"):
                at += 2 if text in self.valued.split() else 1
            elif re.match(r"\w+=", text):
                at += 1
            elif skips:
                skips, at = skips - 1, at + 1
            else:
                break
        return at


def _key_by_name(groups: Mapping[str, _Row]) -> dict[str, _Row]:
    """Return a table with single names as keys, from one with lists of names."""
    return {name: row for names, row in groups.items() for name in names.split()}


_RUNNERS = _key_by_name(
    {
        "sudo": _Runner("-u -g -p -h -C -D"),
        "env": _Runner("-u -C"),
        "nice": _Runner("-n"),
        "ionice": _Runner("-c -n"),
        "timeout": _Runner("-s -k", skips=1),
        "flock": _Runner("-w", skips=1),
        "time": _Runner("-o -f"),
        "stdbuf": _Runner("-i -o -e"),
        "xargs": _Runner("-n -I -P -d -L -a -E -s --arg-file"),
        "parallel": _Runner("-j -a --arg-file"),
        "strace": _Runner("-e -o -p"),
        "watch": _Runner("-n --interval"),
        "chroot taskset chrt faketime": _Runner(skips=1),
        "npx": _Runner("-p --package"),
        "uvx": _Runner("--from --with -p --python"),
        "pnpm": _Runner(words="exec dlx"),
        "uv": _Runner("--with --group --extra -p --python", words="run"),
        "bundle": _Runner(words="exec"),
        "poetry pipenv hatch pdm pipx": _Runner("--spec", words="run"),
        "exec doas command builtin nohup setsid busybox coproc bunx entr unbuffer": _Runner(),
    }
)

_SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "fish"))
_RUN_TEXT = frozenset(("eval", "trap", "su", "script"))
_INTERPRETERS = re.compile(r"(?:python|pypy)[0-9.]*|node|perl|ruby|deno|bun|php|lua|tsx|ts-node")

_VALUED = _key_by_name(
    {
        "touch": "-d -t -r --date --reference",
        "truncate": "-s -r --size",
        "mkdir": "-m --mode",
        "setfacl": "-m -M -x -X --modify --modify-file --remove --remove-file --restore",
        "chattr": "-v -p",
        "install": "-m -o -g -t --mode --target-directory",
        "cp mv ln": "-t -S --target-directory",
        "rsync": "-e -f --exclude --include --filter --exclude-from --rsh --chown",
        "scp": "-c -D -F -i -J -l -o -P -S -X",
        "shred": "-n -s",
        "patch": "-p -i -d -o",
        "grep": "-e -f -A -B -C -m --include --exclude --exclude-dir",
        "rg": "-e -f -A -B -C -m -g -t -T --glob --type",
        "sed": "-e -f --expression --file",
        "awk": "-F -v -f",
        "jq": "--indent -f --from-file",
        "head tail": "-n -c",
        "sort": "-k -t -o -T -S",
        "cut": "-d -f -c -b",
        "vim": "-c --cmd",
        "script": "-c -T -O -I -B -o -E -m",
        "ssh": "-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w",
        "git": "-C -c --git-dir --work-tree --namespace",
    }
)
"""Options whose next word is a value, where it would otherwise be taken for a file."""

_WITHOUT_FILES = """
    echo printf ls stat test [ df basename dirname realpath readlink pwd which type
    hash true false : sleep kill ps cd pushd popd exit return shift wait set unset export local
    declare readonly read let seq alias command expr
"""
"""Programs that read the content of no argument and of no option."""
_WITH_LISTS = "date file du tree"
"""Programs that read a file only as a list, by an option."""
_RUN_ELSEWHERE = """
    docker-compose kubectl helm terraform npm yarn pip pip3 brew apt-get apt systemctl ping history
"""
"""Programs whose operands are rarely files, and are read where they are."""
_WITHOUT_OPTIONS = frozenset((*_WITHOUT_FILES.split(), *PROGRAM_NAMES, "git", "find", "fd", "ssh"))
"""Programs none of whose options reads a file, or which are looked at more closely."""
_LANGUAGES = """
    sqlite3 psql mysql mariadb duckdb mongosh redis-cli gdb lldb vim vi nvim view ex ed emacs
    gnuplot bc dc octave R Rscript tmux screen ftp sftp lftp expect tclsh osascript socat ffmpeg m4
"""
"""Programs with a language of their own, in which a command may read a file: `.read FILE`."""
_WITH_LANGUAGE = frozenset(_LANGUAGES.split())
_READS_NOTHING = frozenset(
    f"{_WITHOUT_FILES} {_WITH_LISTS} {_RUN_ELSEWHERE} ssh rm rmdir unlink mkdir chmod chown touch"
    " mv ln".split()
)


def _touch(
    word: Word, effect: Effect, name_in_folder: str = "", must_exist: bool = False
) -> Iterator[Touch]:
    """Yield the file that a word names; addresses, versions and the like are no files."""
    text = word.text
    if text.startswith("file:"):
        text = text.removeprefix("file:").removeprefix("//")
        word = Word(text)
    is_remote = "://" in text or re.match(r"[\w.@-]+:(?!\\)", text)
    is_device = re.match(r"/dev/(?!shm/)", posixpath.normpath(text))  # shm holds files
    if not text or text == "-" or is_remote or is_device or "\0" in text:
        return
    path = word.pattern if word.is_pattern else text
    yield Touch(path, effect, word.is_pattern, name_in_folder, must_exist)


def _touch_all(words: Sequence[Word], effect: Effect) -> Iterator[Touch]:
    for word in words:
        yield from _touch(word, effect)


def _touch_deep(words: Iterable[Word]) -> Iterator[Touch]:
    for word in words:
        for seen in _touch(word, Effect.READ):
            yield replace(seen, is_deep=True)


def _writes(program: _Program) -> _Seen:
    yield from _touch_all(program.operands(), Effect.WRITE)


def _removes(program: _Program) -> _Seen:
    if program.has("-r", "-R", "--recursive") or program.name in ("rimraf", "trash"):
        paths = tuple(word.text for word in program.operands())
        yield Destruction(program.line, paths, untracked=True)
    yield from _touch_all(program.operands(), Effect.REMOVE)


def _compresses(program: _Program) -> _Seen:
    keeps = program.has("-c", "--stdout", "-k", "--keep", "-l", "-t")
    yield from _touch_all(program.operands(), Effect.READ if keeps else Effect.REMOVE)


def _alters(program: _Program) -> _Seen:
    yield from _touch_all(program.operands(), Effect.ALTER)


def _alters_rest(program: _Program) -> _Seen:
    """Yield the operands after the mode or the owner, which an option may replace: `chmod -x`."""
    mode = _MODE_AS_OPTION.get(program.name, "--reference")
    before = [word.text for word in takewhile(lambda word: word.text != "--", program.arguments)]
    is_given = any(re.fullmatch(mode, text.partition("=")[0]) for text in before)
    yield from _touch_all(program.operands()[0 if is_given else 1 :], Effect.ALTER)


_MODE_AS_OPTION = {
    "chmod": r"-[Rcfv]*[rwxXstugoa,+0-7].*|--reference",
    "chattr": r"-[RVf]*[^RVfvp-].*",
}
"""Options that replace the first operand."""


def _touches_nothing(_: _Program) -> _Seen:
    yield from ()


def _reads_lists(program: _Program) -> _Seen:
    yield from _touch_all(program.values("-f", "--fromfile"), Effect.READ)


def _runs_elsewhere(program: _Program) -> _Seen:
    for word in takewhile(lambda word: word.text != "--", program.arguments):
        if not re.search(r"\s", word.text):
            yield from _touch_named(word.text)


def _examine_ssh(program: _Program) -> _Seen:
    """Its options; behind the host is what runs there."""
    host = next(iter(program.operands()), None)
    own = takewhile(lambda word: word is not host, program.arguments)
    yield from _touch_options(program._replace(arguments=tuple(own)))


def _examine_list_reader(program: _Program) -> _Seen:
    """A program that reads the files whose names it is given on its input."""
    names = program.command.text_in
    if names is None and program.command.is_piped:
        names = UNKNOWN
    for name in (names or "").split():
        yield from _touch(Word(name), Effect.READ)
    yield from _examine_unknown_program(program)


def _copies(program: _Program) -> _Seen:
    sources, target = program.operands(), program.values("-t", "--target-directory")
    if program.name == "install" and program.has("-d"):
        yield from _touch_all(sources, Effect.ALTER)
        return
    if program.name == "ln" and len(sources) == 1 and not target:
        target = [Word(".")]
    if not target:
        sources, target = sources[:-1], sources[-1:]
    taken = {"mv": Effect.REMOVE, "ln": Effect.ALTER}.get(program.name, Effect.READ)
    is_deep = program.name in ("rsync", "scp") or program.has("-r", "-R", "-a", "--recursive")
    for source in sources:
        for seen in _touch(source, taken):
            yield replace(seen, is_deep=is_deep and taken is Effect.READ)
    if program.name in ("ln", "link"):
        yield from _linked(sources, target)
    for folder in target:
        for source in sources:
            yield from _touch(folder, Effect.WRITE, posixpath.basename(source.text.rstrip("/")))
        if not sources or program.has("--delete"):
            yield from _touch(folder, Effect.REMOVE)


def _linked(sources: Sequence[Word], targets: Sequence[Word]) -> Iterator[Touch]:
    """Yield what a link makes readable; a symbolic one is relative to its own place."""
    for source in sources:
        yield from _touch(source, Effect.READ)
        for target in targets:
            if not source.text.startswith("/"):
                for folder in (target.text, posixpath.dirname(target.text)):
                    yield from _touch(Word(posixpath.join(folder, source.text)), Effect.READ)


def _examine_make(program: _Program) -> _Seen:
    yield from _touch_all(program.values("-f", "--file", "--makefile"), Effect.READ)
    yield from _touch_named(program.command.text_in or "")


def _examine_dd(program: _Program) -> _Seen:
    for word in program.arguments:
        name, _, value = word.marked.partition("=")
        if name in ("if", "of"):
            yield from _touch(Word(value), Effect.WRITE if name == "of" else Effect.READ)


def _examine_grep(program: _Program) -> _Seen:
    yield from _touch_all(program.values("-f", "--file"), Effect.READ)
    operands = program.operands()
    has_pattern = program.has("-e", "-f", "--regexp", "--file", "--files")
    is_deep = program.name in ("rg", "ag", "ack") or program.has("-r", "-R", "--recursive")
    is_chosen = program.has("--include", "-g", "--glob", "-t", "--type")
    for seen in _touch_all(operands if has_pattern else operands[1:], Effect.READ):
        yield replace(seen, is_deep=is_deep and not is_chosen)
    yield from _touch_all(program.values("--file"), Effect.READ)


def _examine_sed(program: _Program) -> _Seen:
    operands, scripts = program.operands(), program.values("-e", "--expression")
    if not scripts and not program.has("-f", "--file"):
        scripts, operands = operands[:1], operands[1:]
    effect = Effect.WRITE if program.has("-i", "--in-place") else Effect.READ
    yield from _touch_all(operands, effect)
    for script in scripts:
        yield from (Touch(path, Effect.WRITE) for path in _SCRIPT_WRITES.findall(script.text))
        yield from chain.from_iterable(map(_touch_named, _SCRIPT_READS.findall(script.text)))


def _examine_awk(program: _Program) -> _Seen:
    operands = program.operands()
    if not program.has("-f"):
        for script in operands[:1]:
            yield from (Touch(path, Effect.WRITE) for path in _AWK_WRITES.findall(script.text))
            yield from chain.from_iterable(map(_touch_named, _QUOTED.findall(script.text)))
            if "system(" in script.text:
                yield _Undecided(program.line)
        operands = operands[1:]
    effect = Effect.WRITE if "inplace" in program.line else Effect.READ
    yield from _touch_all(operands, effect)


def _examine_jq(program: _Program) -> _Seen:
    operands = program.operands()
    effect = (
        Effect.WRITE if program.name == "yq" and program.has("-i", "--inplace") else Effect.READ
    )
    skipped = 0 if program.has("-f", "--from-file") else 1
    yield from _touch_all(operands[skipped:], effect)


def _examine_patch(program: _Program) -> _Seen:
    yield from _touch_all(program.operands()[:1], Effect.WRITE)
    yield _Undecided(program.line)


def _unpacks(program: _Program) -> _Seen:
    operands, archive = program.operands(), program.values("-f", "--file")
    yield from _touch_all(program.values("-T", "--files-from"), Effect.READ)
    if program.name == "tar" and not program.has("--create") and not _has_tar_mode(program, "c"):
        if not (program.has("--list") or _has_tar_mode(program, "t")):
            yield _Undecided(program.line)
        return
    if program.name == "unzip" and not program.has("-l"):
        yield _Undecided(program.line)
    elif program.name == "zip":
        yield from _touch_all(operands[:1], Effect.WRITE)
        yield from _touch_deep(operands[1:])
    elif program.name == "tar":
        bundled = (
            archive
            or [word for word in operands if re.search(r"\.t?(?:ar|gz|xz|bz2|zst)", word.text)][:1]
        )
        yield from _touch_all(bundled, Effect.WRITE)
        yield from _touch_deep(word for word in operands if word not in bundled)


def _has_tar_mode(program: _Program, mode: str) -> bool:
    modes = [word.text.removeprefix("-") for word in program.arguments[:1]]
    return any(mode in word and word.isascii() and word.isalpha() for word in modes)


def _examine_docker(program: _Program) -> _Seen:
    yield from _touch_all(program.values("--env-file", "-f", "--file"), Effect.READ)
    if program.has("--volume", "--mount") or any(
        word.text.startswith("-v") for word in program.arguments
    ):
        yield _Undecided(program.line)


def _of_git(program: _Program) -> _Seen:
    words = program.arguments
    folder, is_unchecked, at = "", False, 0
    while at < len(words) and words[at].text.startswith("-"):
        option, at = words[at].text, at + 1
        if option in _VALUED["git"].split() and at < len(words):
            value, at = words[at].text, at + 1
            folder = value if option in ("-C", "--work-tree") else folder
            if option == "-c":
                yield from _touch_named(value.partition("=")[2])
            is_unchecked = is_unchecked or value.lower().startswith("core.hookspath=")
    if at == len(words):
        return
    verb = words[at].text
    program = _Program(f"git {verb}", words[at + 1 :], program.command)
    if is_unchecked or _skips_hooks(program) or _moves_hooks(program):
        yield _Unchecked(program.line)
    if verb in _GIT_DESTROYS and (destruction := _GIT_DESTROYS[verb](program)):
        yield destruction.below(folder)
    given = chain(_git_options(program), _GIT_VERBS.get(verb, _touches_nothing)(program))
    for seen in given:
        yield (
            replace(seen, path=posixpath.join(folder, seen.path))
            if isinstance(seen, Touch | _NewTree)
            else seen
        )


def _paths_named_by(program: _Program) -> tuple[str, ...]:
    """Return the paths that a git command names: the words after `--`, or else its operands."""
    paths = _words_behind_dashes(program)
    words = program.operands() if paths is None else paths
    return tuple(word.text for word in words)


def _reset_destroys(program: _Program) -> Destruction | None:
    return Destruction(program.line) if program.has("--hard", "--merge", "--keep") else None


def _clean_destroys(program: _Program) -> Destruction | None:
    if program.has("-n", "--dry-run"):
        return None
    return Destruction(
        program.line, _paths_named_by(program) or (".",), tracked=False, untracked=True
    )


def _checkout_destroys(program: _Program) -> Destruction | None:
    if (paths := _words_behind_dashes(program)) is not None:
        return Destruction(program.line, tuple(word.text for word in paths))
    if program.has("-f", "--force", "--merge", "-m", "--discard-changes"):
        return Destruction(program.line)
    if program.name == "git switch" or program.has("-b", "-B", "--orphan", "-c", "-C"):
        return None
    words = program.operands()
    return Destruction(program.line, tuple(word.text for word in words)) if words else None


def _restore_destroys(program: _Program) -> Destruction | None:
    if program.has("--staged", "-S") and not program.has("--worktree", "-W"):
        return None
    return Destruction(program.line, _paths_named_by(program))


def _stash_destroys(program: _Program) -> Destruction | None:
    verb = next((word.text for word in program.operands()), "push")
    if verb not in ("push", "save", "-"):
        return None
    return Destruction(
        program.line, untracked=program.has("-u", "-a", "--include-untracked", "--all")
    )


def _rm_destroys(program: _Program) -> Destruction | None:
    is_sure = program.has("-f", "--force") and not program.has("--cached", "-n", "--dry-run")
    return Destruction(program.line, _paths_named_by(program)) if is_sure else None


_GIT_DESTROYS = _key_by_name(
    {
        "rm": _rm_destroys,
        "reset": _reset_destroys,
        "clean": _clean_destroys,
        "checkout switch": _checkout_destroys,
        "restore": _restore_destroys,
        "stash": _stash_destroys,
    }
)


_TAKES_A_VALUE = re.compile(
    r"-[aeiopqsvz]*[mFCct]|--(?:message|file|author|date|template|trailer|fixup|squash)"
)


def _skips_hooks(program: _Program) -> bool:
    before = ""
    for option in (word.text for word in program.arguments):
        if option == "--":
            return False
        is_value = _TAKES_A_VALUE.fullmatch(before) is not None
        short = program.name == "git commit" and re.match(r"-[aeiopqsvz]*n", option)
        if not is_value and (option in _NO_VERIFY or short):
            return True
        before = "" if is_value else option
    return False


_NO_VERIFY = ("--no-verify", "--no-verif", "--no-veri")
"""git accepts abbreviated options."""


def _moves_hooks(program: _Program) -> bool:
    """Return whether the command permanently changes where git looks for its hooks."""
    names = [word.text.lower() for word in program.operands()]
    return program.name == "git config" and "core.hookspath" in names[:-1]


def _touch_pathspecs(
    words: Sequence[Word], effect: Effect, must_exist: bool = False
) -> Iterator[Touch]:
    for word in words:
        spec = Word(_PATHSPEC_MAGIC.sub("", word.marked, count=1))
        if not word.text.startswith((":!", ":^", ":(exclude)")):
            yield from _touch(spec, effect, must_exist=must_exist)


def _words_behind_dashes(program: _Program) -> list[Word] | None:
    texts = [word.text for word in program.arguments]
    return list(program.arguments[texts.index("--") + 1 :]) if "--" in texts else None


def _examine_git_checkout(program: _Program) -> _Seen:
    paths = _words_behind_dashes(program)
    if paths is not None:
        yield from _touch_pathspecs(paths, Effect.WRITE)
        return
    if program.has("-b", "-B", "--orphan", "--detach", "-t", "--track"):
        return
    first, *others = program.operands() or [Word("")]
    yield from _touch_pathspecs(others, Effect.WRITE)
    is_no_branch = re.search(r"(?:^|/)\.", first.text) is not None
    yield from _touch_pathspecs([first], Effect.WRITE, must_exist=not is_no_branch)


def _examine_git_restore(program: _Program) -> _Seen:
    if program.has("--worktree", "-W") or not program.has("--staged", "-S"):
        sources = {value.marked for value in program.values("-s", "--source")}
        operands = _words_behind_dashes(program) or program.operands()
        yield from _touch_pathspecs(
            [word for word in operands if word.marked not in sources], Effect.WRITE
        )


def _examine_git_rm(program: _Program) -> _Seen:
    effect = Effect.ALTER if program.has("--cached") else Effect.REMOVE
    yield from _touch_pathspecs(program.operands(), effect)


def _examine_git_mv(program: _Program) -> _Seen:
    yield from _copies(_Program("mv", program.arguments, program.command))


def _examine_git_clean(program: _Program) -> _Seen:
    if not program.has("-n", "--dry-run"):
        yield from _touch_pathspecs(program.operands(), Effect.REMOVE)
        yield _Undecided(f"{program.name}, which removes what is in no commit")


def _git_shows(program: _Program) -> _Seen:
    """Content of files of a commit, as `REVISION:PATH`, or behind `--`."""
    for word in program.operands():
        if ":" in word.marked and not word.text.startswith(":"):
            yield from _touch(Word(word.marked.partition(":")[2]), Effect.READ)
    if program.name == "git log" and not program.has("-p", "-u", "--patch", "-L", "-c", "--cc"):
        return
    behind = _words_behind_dashes(program)
    operands = program.operands()[1:] if program.name == "git grep" else program.operands()
    for seen in program.values("-L"):
        yield from _touch(Word(seen.marked.rpartition(":")[2]), Effect.READ, must_exist=True)
    paths = behind if behind is not None else operands
    for touch in _touch_pathspecs(paths, Effect.READ, must_exist=program.name != "git grep"):
        yield replace(touch, is_deep=program.name == "git grep")


def _examine_git_archive(program: _Program) -> _Seen:
    yield from _touch_deep(program.operands()[1:])
    yield from _touch_all(program.values("-o", "--output"), Effect.WRITE)


def _git_reads(program: _Program) -> _Seen:
    """A file whose content git shows or keeps, without any commit."""
    yield from _touch_all(program.values("-f", "--file"), Effect.READ)
    if program.name == "git hash-object":
        yield from _touch_all(program.operands(), Effect.READ)
    else:
        yield from chain.from_iterable(_touch_named(word.text) for word in program.operands())


def _git_options(program: _Program) -> _Seen:
    """Files in the values of options that git shows, or keeps as a message."""
    options = ["--file", "--template", "--add-file", "--contents", "--pathspec-from-file"]
    if program.name != "git log":
        options += ["-F", "-t"]
    if program.name == "git grep":
        options += ["-f"]
    for word in program.values(*options):
        yield from _touch_named(word.text)


def _git_stages(program: _Program) -> _Seen:
    """Files whose content git takes into the repository."""
    paths = _words_behind_dashes(program)
    words = program.operands() if paths is None else [*program.operands(), *paths]
    is_add = program.name in ("git add", "git stage")
    if is_add and not words and program.has("-A", "--all", "--no-ignore-removal"):
        words = [Word(".")]
    words = [Word(".") if _PATHSPEC_MAGIC.fullmatch(word.text) else word for word in words]
    is_forced = is_add and program.has("-f", "--force")
    staged = Staged.FORCED if is_forced else Staged.UNIGNORED
    for touch in _touch_pathspecs(words, Effect.READ, must_exist=True):
        yield replace(touch, staged=staged)


def _git_makes_tree(program: _Program) -> _Seen:
    verb, *words = program.operands() or [Word("")]
    if verb.text == "add":
        yield from (_NewTree(word.text) for word in words)


def _git_overwrites(program: _Program) -> _Seen:
    """The work tree changes depending on the content of a commit or a patch."""
    if program.name == "git reset" and not program.has("--hard", "--merge", "--keep"):
        return
    if (
        program.name == "git stash"
        and program.operands()[:1]
        and program.operands()[0].text in ("list", "show")
    ):
        return
    yield _Undecided(program.line)


_GIT_VERBS = _key_by_name(
    {
        "checkout": _examine_git_checkout,
        "restore": _examine_git_restore,
        "rm": _examine_git_rm,
        "mv": _examine_git_mv,
        "clean": _examine_git_clean,
        "show diff blame cat-file grep log whatchanged difftool format-patch": _git_shows,
        "archive": _examine_git_archive,
        "config hash-object": _git_reads,
        "add stage commit update-index": _git_stages,
        "worktree": _git_makes_tree,
        "reset stash apply am checkout-index read-tree": _git_overwrites,
    }
)


def _examine_unknown_program(program: _Program) -> _Seen:
    """An unknown program: its arguments are read, and written if an option says so."""
    writes = program.has("--write", "--fix", "--in-place", "--inplace")
    for at, word in enumerate(program.arguments):
        if posixpath.basename(word.text) in PROGRAM_NAMES:  # it may run what it is given
            ours = _Program("yolo-fs", program.arguments[at + 1 :], program.command)
            yield from _examine_own_verb(ours)
            break
    for word in program.arguments:
        if match := _FROM_FILE.search(word.marked):  # as in `curl -F field=@FILE;type=text/plain`
            yield from _touch(Word(match[1]), Effect.READ)
    for word in program.operands():
        is_path = any(sign in word.text for sign in ("/", ".", UNKNOWN))
        if is_path and not re.search(r"\s", word.text):
            yield from _touch(
                Word(word.marked.removeprefix("@")), Effect.ALTER if writes else Effect.READ
            )
    outputs = program.values("--output", "--output-file", "--outfile", "--out", "--out-file")
    if program.name in _OUTPUT_BY_O:
        outputs += program.values(_OUTPUT_BY_O[program.name])
    for word in outputs:
        if re.search(r"[./]", word.text) and not re.search(r"[{}=\s]", word.text):
            yield from _touch(word, Effect.WRITE)


def _examine_own_verb(program: _Program) -> _Seen:
    """A verb of ours: what it reads and writes for whoever types it, and whose it is."""
    texts = [word.text for word in program.arguments[:_MOST_NAMES]]
    names = (" ".join(texts[:count]) for count in range(len(texts), 0, -1))
    row = next((OWN_VERB_BY_NAME[name] for name in names if name in OWN_VERB_BY_NAME), None)
    if row is None:
        if UNKNOWN in "".join(texts):
            yield _Undecided(program.line)
        yield from _examine_unknown_program(program)
        return
    behind = program.arguments[row.name.count(" ") + 1 :]
    given = _Program("yolo-fs", tuple(_strip_flags(word) for word in behind), program.command)
    is_meant = not row.only_with or given.has(*row.only_with)
    if row.whose is not Whose.ANYBODY and is_meant and not given.has(*row.never_with):
        department = next((word.text for word in given.operands()), "")
        yield OwnUse(program.line, row.whose, department, row.roles)
    for word in given.values(*row.speaks_by):
        if UNKNOWN not in word.text:
            yield OwnUse(program.line, Whose.ANYBODY, speaks_for=word.text)
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
                yield from _touch(spelled, effect)


_MOST_NAMES = 3
"""Words of the longest name of a verb."""


def _strip_flags(word: Word) -> Word:
    """Return `-oFILE` for `-qoFILE`."""
    return Word(re.sub(r"^-[qv]+(?=[oC])", "-", word.marked))


_FROM_FILE = re.compile(r"^(?:-[A-Za-z]|[^@]*=)?[@<]([^;]+)")
_OUTPUT_BY_O = _key_by_name(
    {"curl sort gcc g++ cc clang go rustc ld dot pandoc mmdc": "-o", "wget": "-O"}
)
"""The option that names the output, where it is no `--output`."""

_PROGRAMS = _key_by_name(
    {
        _WITHOUT_FILES: _touches_nothing,
        "tee touch truncate sponge ed ex vi vim nvim nano emacs code": _writes,
        "rm rmdir unlink shred rimraf trash": _removes,
        "gzip gunzip bzip2 xz zstd": _compresses,
        "mkdir": _alters,
        "setfacl": _alters,
        "chmod chown chgrp chattr": _alters_rest,
        "cp mv ln install rsync link scp": _copies,
        "dd": _examine_dd,
        "patch": _examine_patch,
        "tar zip unzip": _unpacks,
        "grep egrep fgrep rg ag ack": _examine_grep,
        "sed": _examine_sed,
        "awk gawk mawk": _examine_awk,
        "jq yq": _examine_jq,
        "git": _of_git,
        "yolo-fs": _examine_own_verb,
        "make gmake": _examine_make,
        "cpio pax": _examine_list_reader,
        _WITH_LISTS: _reads_lists,
        _RUN_ELSEWHERE: _runs_elsewhere,
        "ssh": _examine_ssh,
        "docker podman": _examine_docker,
    }
)


def _examine_shell(program: _Program, look: _Look) -> _Seen:
    """Read the text given to a shell; input from a file or a pipe is undecided."""
    given = [word for word in program.arguments if re.search(r"[\s;&|>]", word.text)]
    texts = [word.text for word in given]
    if program.name == "eval":
        texts = [" ".join(word.text for word in program.arguments)]
    if program.command.text_in is not None:
        texts.append(program.command.text_in)
    for text in texts:
        if UNKNOWN in text or look.depth == _MOST_NESTED:
            yield _Undecided(program.line)
        if look.depth < _MOST_NESTED:
            yield from _examine_text(text, look._replace(depth=look.depth + 1))
    if program.name == "script":
        yield from _touch_all(program.operands(), Effect.WRITE)
    if program.name in _SHELLS:
        for word in program.arguments:
            if word not in given and re.search(r"[./]", word.text):  # a script is read, too
                yield from _touch(word, Effect.READ, must_exist=True)
        if not texts and not program.has("--version", "-n"):
            yield _Undecided(program.line)


def _examine_interpreter(program: _Program) -> _Seen:
    """Examine the code given to an interpreter; a script is not opened."""
    name = program.name
    if (ours := _find_own_program(program)) is not None:
        yield from _examine_own_verb(ours)
        return
    in_place = name == "perl" and any(
        re.match(r"-[a-z]*i", word.text) for word in program.arguments
    )
    codes = dict.fromkeys(
        word.text for word in program.arguments if re.search(r"[\s()=;]", word.text)
    )
    for option, word in pairwise(program.arguments):
        if _CODE_OPTION.fullmatch(option.text):
            codes[word.text] = None
    if program.command.text_in is not None:
        codes[program.command.text_in] = None
    for code in codes:
        yield from _of_code(program, code)
    operands = [word for word in program.operands() if word.text not in codes]
    if in_place:
        yield from _touch_all(operands, Effect.WRITE)
    elif program.has("-m"):
        yield from _examine_unknown_program(program)
    elif name in ("perl", "ruby") and any(_IS_FILTER.match(w.text) for w in program.arguments):
        yield from _touch_all(operands, Effect.READ)
    elif codes:
        yield from _touch_all([word for word in operands if "/" in word.text], Effect.READ)
    elif operands or program.command.is_piped:
        yield _Undecided(program.line)


def _find_own_program(program: _Program) -> _Program | None:
    """Return our own program if the interpreter runs it, by module or by path."""
    for at, word in enumerate(program.arguments):
        named = posixpath.basename(word.text.removeprefix("-m"))
        if named in PROGRAM_NAMES:
            return _Program("yolo-fs", program.arguments[at + 1 :], program.command)
        if not word.text.startswith("-"):
            return None
    return None


_IS_FILTER = re.compile(r"-[a-zA-Z0-9]*[pn]")
"""Options by which an interpreter reads the files in its arguments."""


def _of_code(program: _Program, code: str) -> _Seen:
    writes, runs = _CODE_WRITES.search(code) is not None, _CODE_RUNS.search(code) is not None
    paths = _CODE_PATH.findall(code)
    literals = (literal[1] for literal in _CODE_LITERAL.findall(code))
    yield from (Touch(path, Effect.READ, must_exist=True) for path in literals if "." in path)
    folders = dict.fromkeys(path for path in paths if _CODE_FOLDER.search(path))
    names = dict.fromkeys(path for path in paths if "/" not in path and path not in folders)
    put_together = (posixpath.join(folder, name) for folder in folders for name in names)
    effect = Effect.WRITE if writes else Effect.READ
    yield from (Touch(path, effect) for path in chain(dict.fromkeys(paths), put_together))
    if runs or (writes and not paths):
        yield _Undecided(program.line)


def _examine_find(program: _Program, look: _Look) -> _Seen:
    """`find` with `-delete` or `-exec`: files of the planning tree that may match are judged."""
    texts = [word.text for word in program.arguments]
    actions = [at for at, text in enumerate(texts) if text in _FIND_RUNS]
    ends = [at for at, text in enumerate(texts) if text in (*_FIND_RUNS, ";", "+")]
    ends.append(len(texts))
    roots = []
    for word in program.arguments:
        if word.text.startswith(("-", "(", "!")):
            break
        roots.append(word)
    names = [*program.values("-name"), *program.values("-iname")]
    removes_or_writes, reads = "-delete" in texts, False
    is_bare = not names  # then only what is asked for by name is looked at
    for at in actions:
        end = ends[bisect_right(ends, at)]
        words = tuple(
            Word(UNKNOWN) if "{}" in word.text else word for word in program.arguments[at + 1 : end]
        )
        inner = replace(program.command, words=words, redirections=())
        run = _Program.of(inner)
        reads = reads or (run is not None and run.name not in _READS_NOTHING)
        for seen in _examine_program(inner, look):
            if isinstance(seen, Touch) and not seen.is_certain:
                removes_or_writes = removes_or_writes or seen.writes
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
    if removes_or_writes:
        patterns = (
            posixpath.join(_planning_tree_below(root.text), "**", name.text)
            for root in roots or [Word(".")]
            for name in names or [Word("*")]
        )
        yield from (Touch(pattern, Effect.ALTER, is_pattern=True) for pattern in patterns)
        yield _Undecided(program.line)


_FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X")


def _planning_tree_below(root: str) -> str:
    return root if ".yolo-planning" in root else posixpath.join(root, ".yolo-planning")
