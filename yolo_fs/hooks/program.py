"""A program with its arguments, behind whatever runs it. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple, TypeVar

from yolo_fs.hooks.effects import Touch, touch_named
from yolo_fs.hooks.shell import UNKNOWN, SimpleCommand, Word

_Row = TypeVar("_Row")


def touch_options(program: Program) -> Iterator[Touch]:
    """Yield the files that are there by the names of options' values, with or without a blank."""
    valued = VALUED.get(program.name, "").split()
    for before, word in pairwise((Word(""), *program.arguments)):
        if _LEAVES_OUT.match(word.text):
            continue
        if before.text in valued and before.text not in _TAKE_TEXT:
            yield from touch_named(word.text)
        elif word.text.startswith("-"):
            yield from touch_named(word.text[2:])


_TAKE_TEXT = ("-e", "--expression", "--regexp", "--exclude", "--exclude-dir")
"""Options whose value is a pattern or a script."""
_LEAVES_OUT = re.compile(r"--exclude(?:-dir)?=|(?:--i?glob=|-g)?!")
"""How an argument begins that names what a program leaves alone."""


class Program(NamedTuple):
    """A program and its arguments, without wrappers such as `sudo` or `xargs`."""

    name: str
    arguments: tuple[Word, ...]
    command: SimpleCommand

    @classmethod
    def of(cls, command: SimpleCommand) -> Program | None:
        words, at = command.words, 0
        takes_input = False
        while at < len(words):
            name = posixpath.basename(words[at].text)
            runner = RUNNERS.get(name)
            only_asks = name == "command" and [word.text for word in words[at + 1 : at + 2]] in (
                ["-v"],
                ["-V"],
            )
            if runner is None or only_asks or not runner.runs(words, at + 1):
                break
            at = runner.find_program(words, at + 1)
            takes_input = takes_input or name in ("xargs", "parallel")
        if at >= len(words):
            return None
        text = words[at].text
        name = text if re.search(r"\s", text) else posixpath.basename(text)
        arguments = words[at + 1 :]
        if takes_input:
            given = map(Word.of_pattern, (input_of(command) or UNKNOWN).split())
            arguments = tuple(_fill_in(arguments, tuple(given)))
        return cls(name, arguments, command)

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
        valued = VALUED.get(self.name.replace(" ", "-"), "").split()
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
        """Return the values of options: `-o FILE`, `-oFILE`, `-xo FILE`, `--o FILE`, `--o=FILE`;
        `-xoFILE` where it is known that `-x` takes no value.
        """
        flags = _FLAGS.get(self.name, "")
        values: list[Word] = []
        for at, word in enumerate(self.arguments):
            for option in options:
                is_short = len(option) == 2
                if word.text == option or (is_short and _ends_group(word.text, option[1])):
                    values += self.arguments[at + 1 : at + 2]
                elif option.startswith("--") and word.text.startswith(f"{option}="):
                    values.append(Word(word.marked.partition("=")[2]))
                elif is_short and word.text.startswith(option):
                    values.append(Word(word.marked[2:]))
                elif is_short and flags:
                    group = re.match(f"-[{flags}]+{option[1]}(.+)", word.marked)
                    values += [Word(group[1])] if group else []
        return values


def _ends_group(text: str, letter: str) -> bool:
    return re.fullmatch(r"-[A-Za-z]+", text) is not None and text.endswith(letter)


def _fill_in(arguments: Sequence[Word], given: Sequence[Word]) -> Iterator[Word]:
    """Yield arguments with what xargs is given in the place of `{}`, or else at their end."""
    holes = [word for word in arguments if "{}" in word.text]
    names = [each.marked for each in given]
    for word in arguments:
        spelled = [word.marked.replace("{}", name) for name in names] if word in holes else ()
        yield from map(Word, spelled or (word.marked,))
    yield from () if holes else given


def input_of(command: SimpleCommand) -> str | None:
    """Return the text that a command reads, or the patterns of the names in it; None if unknown."""
    source = command.source
    if source is not None and [word.text for word in source.words] == ["cat"]:
        return input_of(source) if command.text_in is None else command.text_in
    if command.text_in is not None or source is None or source.redirections or not source.words:
        return command.text_in
    name, arguments = posixpath.basename(source.words[0].text), source.words[1:]
    prints = _PRINTS.get(name)
    return prints(arguments) if prints else None


def _echoed(arguments: Sequence[Word]) -> str:
    return " ".join(word.text for word in arguments if not re.fullmatch("-[neE]+", word.text))


def _formatted(arguments: Sequence[Word]) -> str:
    texts = [word.text for word in arguments if word.text != "--"]
    named = texts[1:] if len(texts) > 1 else [text.replace("%%", "%") for text in texts]
    return "\n".join(re.sub(r"\\[n0]", "\n", text) for text in named)


def _listed(arguments: Sequence[Word]) -> str:
    """Return patterns of what `ls` prints: files as they are named, what is in a folder by name."""
    named = [word for word in arguments if not word.text.startswith("-")]
    is_flat = any(re.match("-[a-zA-Z]*d", word.text) for word in arguments)
    hidden = any(re.match("-[a-zA-Z]*[aA]|--a", word.text) for word in arguments)
    as_named = [word.pattern for word in named if is_flat or word.is_pattern]
    if len(as_named) == len(named) and named:
        return " ".join(as_named)
    return " ".join((*as_named, "[!.]*", *([".[!.]*"] if hidden else ())))


def _printed_by_find(arguments: Sequence[Word]) -> str | None:
    """Return patterns of what `find` prints; None for all that is in a folder of no interest."""
    roots = list(takewhile(lambda word: not re.match(r"[-(!]", word.text), arguments))
    pairs = pairwise(word.text for word in arguments)
    names = [name for option, name in pairs if option in ("-name", "-iname")]
    places = [root.text.rstrip("/") for root in roots] or ["."]
    if not names and not all(".yolo-planning" in place for place in places):
        return None
    below = (f"{place}/**/{name}" for place in places for name in names or ["*"])
    here = (f"{place}/{name}" for place in places for name in names)  # `**` may not be read so
    return " ".join((*below, *here))


_PRINTS: Mapping[str, Callable[[Sequence[Word]], str | None]] = {
    "echo": _echoed,
    "printf": _formatted,
    "ls": _listed,
    "find": _printed_by_find,
}
"""Program → what it prints, as far as its words tell."""


class _Runner(NamedTuple):
    """A program that runs another one, named in its arguments."""

    valued: str = ""
    """Its options that take a value."""
    skips: int = 0
    """Number of its own operands before that program."""
    words: str = ""
    """The subcommands that run a program; empty when it has no subcommands."""
    folder: str = ""
    """Its options that say where the program runs."""

    def runs(self, words: Sequence[Word], at: int) -> bool:
        """Return whether it runs a program here; `at`: where its own arguments begin."""
        return not self.words or (at < len(words) and words[at].text in self.words.split())

    def find_program(self, words: Sequence[Word], at: int) -> int:
        """Return the index of the program that it runs; `at`: where its own arguments begin."""
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


def key_by_name(groups: Mapping[str, _Row]) -> dict[str, _Row]:
    """Return a table with single names as keys, from one with lists of names."""
    return {name: row for names, row in groups.items() for name in names.split()}


RUNNERS = key_by_name(
    {
        "sudo": _Runner("-u -g -p -h -C -D --chdir --user", folder="-D --chdir"),
        "env": _Runner("-u -C --chdir --unset", folder="-C --chdir"),
        "doas": _Runner("-u -C"),
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
        "runuser": _Runner("-u -g -G -s -w"),
        "exec command builtin noglob nohup setsid busybox toybox": _Runner(),
        "coproc bunx entr unbuffer": _Runner(),
    }
)

VALUED = key_by_name(
    {
        "touch": "-d -t -r --date --reference",
        "truncate": "-s -r --size",
        "fallocate": "-l -o --length --offset",
        "mkdir": "-m --mode",
        "setfacl": "-m -M -x -X --modify --modify-file --remove --remove-file --restore",
        "chattr": "-v -p",
        "install": "-m -o -g -t --mode --target-directory",
        "cp mv ln": "-t -S --target-directory",
        "rsync": "-e -f --exclude --include --filter --exclude-from --rsh --chown",
        "scp": "-c -D -F -i -J -l -o -P -S -X",
        "shred": "-n -s",
        "patch": "-p -i -d -o",
        "tar bsdtar": "-C -f -T -X --directory --file --exclude --strip-components",
        "unzip": "-d -x -P",
        "cpio": "-D -F -H -E",
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
        "git-clone": "-o -b -u -c -j --depth --branch --origin --config --reference --template"
        " --separate-git-dir --filter",
        "git-init": "-b --initial-branch --template --separate-git-dir --object-format",
        "git-worktree": "-b -B --reason",
        "git-submodule": "-b --name --reference --depth",
        "git-merge-file": "-L",
        "split": "-a -b -C -l -n -t --additional-suffix --filter",
        "csplit": "-b -f -n --prefix --suffix-format",
        "mktemp": "-p --suffix",
        "openssl": "-in -out -keyout",
        "curl": "-o -X -H -d -F -u -A -b -c -D -e -K -m -T -w --output --header --data",
        "wget": "-O -o -a -i -P -e -t -T -U --header",
    }
)
"""Options whose next word is a value, where it would otherwise be taken for a file."""
_FLAGS = {"curl": "sSLfkgijnNqGJORvZ0123469", "wget": "qvcNrxpkKHLSbdV46"}
"""Letters of the options without a value that often stand before one with a value."""
