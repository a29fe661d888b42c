"""An agent that knows nothing but what it was just told, and does that to the letter."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from yolo_fs.cli.main import run

_FINDING = re.compile(
    r"(?:- )?(?P<path>[^:]+?)(?::(?P<line>\d+))?(?: at (?P<at>/\S*))?: (?P<reason>[a-z0-9_]+): "
    r"(?P<said>.*)"
)
_FIXABLE = re.compile(r"(?P<fixable>\d+) of (?P<all>\d+) fixable: yolo-fs (?P<command>.+)")
_RENAME = re.compile(r"expected (?P<path>\S+)\. Rename the file\.")
_INSTEAD = re.compile(
    r"expected (?P<path>\S+)\. Write the artifact as [\w ]+: 'yolo-fs (?P<command>schema example \S+)'"
)
_EXAMPLE = re.compile(r"'yolo-fs (?P<command>schema example \S+)' prints a valid one")
_WRITE = re.compile(r"Write (?P<members>\"\S+) here")
_TAKE = re.compile(r"Remove (?P<what>\S+) from `(?P<key>\w+)` of (?P<whose>\S+) if")
_LATIN = re.compile(r"'(?P<command>iconv [^']*) FILE'")
_HASHES = re.compile(r"'(?P<command>git log [^']*)' lists")
_KEY = re.compile(r"got the key '(?P<key>\w+)'; expected one of the keys (?P<first>\w+)")
_CORRECTED = "  corrected: "
_EXPECTED = re.compile(r"; expected (?P<expected>.*?)(?:\. [A-Z'].*|\. [a-z][a-z ]+.*)?$")


def said_by(*words: str, given: str = "") -> str:
    """Return what a command prints, for a person or for a host that reads stdout."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        run(list(words))
    return out.getvalue()


class Obedient:
    """It mends one file, in one turn."""

    def __init__(self, root: Path, phase: str) -> None:
        self.root = root
        self.phase = phase
        """The folder of the phase that it works in: the one thing that it knows by itself."""
        self._moved: dict[str, str] = {}
        """Files that it renamed, and their names since."""
        self._gone: set[str] = set()
        """Places of keys that it took away."""

    def obey(self, message: str) -> None:
        """Do what a message says, once."""
        message, _, by_hand = message.partition("Then fix by hand:\n")
        self._obey_first(message)
        for line in by_hand.splitlines():
            if found := _FINDING.fullmatch(line):
                self._mend(found)

    def _obey_first(self, message: str) -> None:
        fixable = _FIXABLE.search(message)
        if fixable and fixable["fixable"] == fixable["all"]:
            self._run(fixable["command"])
            return
        for line in self._take_over(message).splitlines():
            if found := _FINDING.fullmatch(line):
                self._mend(found)
        if fixable:
            self._run(fixable["command"])

    def _take_over(self, message: str) -> str:
        """Put each line that is shown corrected in its place; return what is said of others."""
        said = message.splitlines()
        for number, line in enumerate(said):
            if not line.startswith(_CORRECTED):
                continue
            of = next(
                found for each in reversed(said[:number]) if (found := _FINDING.fullmatch(each))
            )
            path, at = self.root / of["path"], int(of["line"])
            lines = path.read_text().splitlines()
            lines[at - 1] = line.removeprefix(_CORRECTED)
            path.write_text("".join(f"{each}\n" for each in lines))
            about = (of["path"], of["line"])
            said = [
                "" if (found := _FINDING.fullmatch(each)) and (found["path"], found["line"]) == about
                else each
                for each in said
            ]  # fmt: skip
        return "\n".join(said)

    def _run(self, command: str) -> str:
        words = (self._moved.get(word, word) for word in shlex.split(command))
        return said_by(*words, "-C", str(self.root))

    def _mend(self, found: re.Match[str]) -> None:
        if found["at"] in self._gone:
            return
        if found["reason"] in ("state_conflict", "totals_disagree"):
            return  # which of two values is wrong is not said, and cannot be
        path, said = self.root / self._moved.get(found["path"], found["path"]), found["said"]
        number = int(found["line"] or 0)
        for pattern, act in self._acts(path, number, found["at"] or ""):
            if told := pattern.search(said):
                act(told)
                return

    def _acts(
        self, path: Path, number: int, at: str
    ) -> tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], None]], ...]:
        def rename(told: re.Match[str]) -> None:
            fresh = self.root / told["path"].replace("NN-SLUG", self.phase)
            fresh.parent.mkdir(parents=True, exist_ok=True)
            path.rename(fresh)
            self._moved[str(path.relative_to(self.root))] = str(fresh.relative_to(self.root))

        def write_instead(told: re.Match[str]) -> None:
            (self.root / told["path"]).write_text(self._run(told["command"]))

        def example(told: re.Match[str]) -> None:
            text = self._run(told["command"])
            lines = path.read_text(errors="replace").splitlines() if number > 1 else []
            if not lines:
                path.write_text(text)
                return
            there = text.splitlines()
            lines[number - 1] = there[min(number, len(there)) - 1]
            path.write_text("".join(f"{line}\n" for line in lines))

        def write(told: re.Match[str]) -> None:
            self._change(path, number, json.loads(f"{{{told['members']}}}"))

        def take(told: re.Match[str]) -> None:
            records = [json.loads(line) for line in path.read_text().splitlines()]
            [whose] = [each for each in records if each.get("id") == told["whose"]]
            whose[told["key"]].remove(told["what"])
            path.write_text("".join(json.dumps(each) + "\n" for each in records))

        def take_it(told: re.Match[str]) -> None:
            self._set(path, number, at, None)

        def keep_one(told: re.Match[str]) -> None:
            self._change(path, number, {})

        def keep_above(told: re.Match[str]) -> None:
            text = path.read_text()
            above = re.sub(
                r"^=======$.*?^>>>>>>>[^\n]*\n", "", text, flags=re.MULTILINE | re.DOTALL
            )
            path.write_text(re.sub(r"^<<<<<<<.*\n", "", above, flags=re.MULTILINE))

        def latin(told: re.Match[str]) -> None:
            words = [*shlex.split(told["command"]), str(path)]
            path.write_bytes(subprocess.run(words, capture_output=True, check=True).stdout)

        def newest(told: re.Match[str]) -> None:
            words = shlex.split(told["command"])
            log = subprocess.run(words, cwd=self.root, capture_output=True, check=True)
            self._set(path, number, at, log.stdout.split()[0].decode())

        def rename_key(told: re.Match[str]) -> None:
            self._set(path, number, at, None)
            self._gone.add(at)

        def fill(told: re.Match[str]) -> None:
            self._set(path, number, at, example_in(told["expected"]))

        return (
            (_INSTEAD, write_instead),
            (_RENAME, rename),
            (_EXAMPLE, example),
            (_WRITE, write),
            (_TAKE, take),
            (re.compile(r"[Rr]emove it from `"), take_it),
            (re.compile("keep one of the two"), keep_one),
            (re.compile("Keep the lines above ======="), keep_above),
            (_LATIN, latin),
            (_HASHES, newest),
            (_KEY, rename_key),
            (_EXPECTED, fill),
        )

    def _change(self, path: Path, number: int, members: Mapping[str, Any]) -> None:
        lines = path.read_text().splitlines()
        lines[number - 1] = json.dumps({**json.loads(lines[number - 1]), **members})
        path.write_text("".join(f"{line}\n" for line in lines))

    def _set(self, path: Path, number: int, at: str, value: Any) -> None:
        """Put a value to a place within a line; None takes away what is there."""
        if path.suffix == ".md":
            _set_field(path, at.rpartition("/")[2], value)
            return
        is_whole = path.suffix == ".json"
        lines = [path.read_text()] if is_whole else path.read_text().splitlines()
        try:
            record = json.loads(lines[number - 1])
        except ValueError:
            return
        *way, last = at.removeprefix("/").split("/")
        inner: Any = record
        for step in way:
            inner = inner[int(step)] if isinstance(inner, list) else inner[step]
        key = int(last) if isinstance(inner, list) else last
        if isinstance(inner, list) and key >= len(inner):
            return  # what a finding before it had taken out
        if value is None:
            del inner[key]
        else:
            inner[key] = value
        lines[number - 1] = json.dumps(record)
        path.write_text("".join(f"{line}\n" for line in lines))


def _set_field(path: Path, key: str, value: Any) -> None:
    """Put a value to a field of a HANDOFF.md; None takes the field away."""
    lines = path.read_text().splitlines()
    end = lines.index("---", 1) if "---" in lines[1:] else len(lines)
    others = [line for line in lines[1:end] if not line.startswith(f"  {key}:")]
    own = [] if value is None else [f"  {key}: {value}"]
    path.write_text("".join(f"{line}\n" for line in (lines[0], *others, *own, *lines[end:])))


def example_in(expected: str) -> Any:
    """Return the value that an expectation gives as its example, else the first that it lists."""
    described, _, example = expected.rpartition("such as ")
    if described:
        try:
            return json.loads(example)
        except ValueError:
            return example
    first = re.split(r", | or ", expected)[0]
    return {"true": True, "''": ""}.get(first, first)
