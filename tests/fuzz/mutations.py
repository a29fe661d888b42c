"""Breeds input: mutants of what is valid, and things made up from a grammar or from an exported JSON Schema."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "fixtures" / "examples"
SCHEMAS = ROOT / "schemas"

PIECES = (
    b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"0", b"1e999", b"-", b".", b"NaN", b"-Infinity", b"null", b"true",
    b"\\u", b"\\ud83d", b"\\ude00", b"\\\\u", b"\\ud800", b"\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"\0", b"\r", b"\t",
    b" ", b"\xef\xbb\xbf", b"\x1e", b"\xe2\x80\xa8", b"\xc2\xa0", b"```", b"=======", b"<<<<<<< ", b"\n", b"\n\n",
    b"123456789012345678901", b"12345678901234567890", b"[" * 65, b'{"a":' * 63, b"'", b"/*", b'"a":1,', b'"id":"C1",',
    b"e", b"+", b"01", b"\x7f", b"\xf0\x9f\x98\x80", b"\x0c", b"1.0", b"-0", b"1E-400", b"\\n", b"\\u0000",
)  # fmt: skip
YAML_PIECES = (
    b"#", b" #", b":", b": ", b"'", b'"', b"&a", b"*a", b"!", b"!!str ", b"|", b">", b"[", b"]", b"{", b"}", b"? ",
    b"- ", b"-", b"\n", b"\n  ", b"\n    ", b"\t", b" ", b"  ", b"\\", b"\\x41", b"\\u2028", b"\\U0001F600", b"\\ud83d",
    b"%", b"@", b"`", b"\0", b"\r", b"~", b"<<: ", b"<<", b"---", b"\n---\n", b"...", b"\n...\n", b"\xff", b".", b",",
    b"\xc2\x85", b"\xe2\x80\x8b", b"\xef\xbb\xbf", b"\xef\xbf\xbe", b"handoff:", b"a: b", b"no", b"0123", b"<<<<<<< ",
    b"\xc3\xa9", b"\xe2\x80\xa9", b"\xc2\xa0", b"x" * 1030, b"", b"=======", b"|||||||", b"\\ ", b"\\/", b"''", b'\\"',
)  # fmt: skip

VERSIONS_END = b"\n=\n"
"""Stands between the three versions of a file that are to be merged."""


@dataclass(frozen=True, slots=True)
class Specimen:
    """One file to be judged."""

    kind: str
    """Name in the catalogue, such as `artifact/plan`; empty for no kind."""
    data: bytes


# --- what is valid ---------------------------------------------------------------------------------------------------

_FAMILIES = {
    "artifacts": "artifact/", "messages": "message/", "envelopes": "envelope/", "handoffs": "handoff/",
    "states": "state/", "configs": "",
}  # fmt: skip


@cache
def valid_lines() -> tuple[Specimen, ...]:
    """Return the good examples of every kind of JSON, each object on one line."""
    found = []
    for path in sorted(EXAMPLES.glob("*/*/ok/*.json*")):
        kind = _FAMILIES[path.parts[-4]] + path.parts[-3]
        text = path.read_bytes()
        if path.suffix == ".json":
            text = json.dumps(json.loads(text), ensure_ascii=False).encode() + b"\n"
        found.append(Specimen(kind, text))
    return tuple(found)


@cache
def valid_handoffs() -> tuple[bytes, ...]:
    """Return the good front matters."""
    places = [
        ROOT / "fixtures/front_matter/ok",
        EXAMPLES / "artifacts/handoff/ok",
        EXAMPLES / "handoffs/handoff-file/ok",
    ]
    return tuple(path.read_bytes() for place in places for path in sorted(place.glob("*.md")))


@cache
def bad_handoffs() -> tuple[bytes, ...]:
    """Return the tricks that are known."""
    return tuple(
        path.read_bytes() for path in sorted((ROOT / "fixtures/front_matter/bad").glob("*.md"))
    )


@cache
def schemas() -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Return every exported schema with its name, such as `artifact/plan/task`."""
    files = sorted(SCHEMAS.rglob("*.schema.json"))
    return tuple(
        (str(f.relative_to(SCHEMAS)).removesuffix(".schema.json"), json.loads(f.read_text()))
        for f in files
    )


def seeds_of(target: str) -> tuple[bytes, ...]:
    """Return good input of a parser, with the tricks that are known. See `tests/fuzz/guided.py`."""
    match target:
        case "front-matter":
            return (*valid_handoffs(), *bad_handoffs())
        case "toon":
            return tuple(path.read_bytes() for path in sorted(EXAMPLES.glob("*/*/*/*.toon")))
        case "envelope":
            return tuple(
                f"{each.kind.removeprefix('envelope/')}\n".encode() + each.data
                for each in valid_lines()
                if each.kind.startswith("envelope/")
            )
        case "merge":
            logs = [each.data for each in valid_lines() if each.kind.startswith("artifact/")]
            return tuple(
                VERSIONS_END.join((base, base + other, base + third))
                for base, other, third in zip(logs, logs[1:], logs[2:], strict=False)
            )
        case "hook":
            acts = (ROOT / "fixtures/hooks/forbidden.txt").read_text().splitlines()
            told = [
                path.read_bytes() for path in sorted((ROOT / "fixtures/hooks").glob("*/*.json"))
            ]
            return (*told, *(_asked(act) for act in acts if not act.startswith("#")))
        case _:
            return tuple(each.data for each in valid_lines())


_PHASE = ".yolo-planning/phases/01-auth"
_PLACES = {
    "@P": _PHASE, "@S": f"{_PHASE}/.dept-status-backend.json", "@H": f"{_PHASE}/.handoff-ui-ux-complete",
    "@T": ".yolo-planning/state.json", "@R": ".yolo-planning", "⏎": "\n",
}  # fmt: skip


def _asked(act: str) -> bytes:
    """Return the question of a host whether an agent may run a command."""
    _, agent, command = act.split(None, 2)
    for sign, place in _PLACES.items():
        command = command.replace(sign, place)
    asked = {
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "agent_type": agent,
    }
    return json.dumps(asked).encode()


# --- bytes -----------------------------------------------------------------------------------------------------------


def disturb(
    chance: random.Random, data: bytes, pieces: Sequence[bytes], counts: Sequence[int]
) -> bytes:
    """Return the bytes with some of them replaced, removed or added."""
    changed = bytearray(data)
    for _ in range(chance.choice(counts)):
        at = chance.randrange(len(changed) + 1)
        until = min(len(changed), at + chance.choice((0, 0, 1, 1, 2, 8)))
        changed[at:until] = (
            chance.choice(pieces) if chance.random() < 0.7 else bytes((chance.randrange(256),))
        )
    return bytes(changed)


# --- lines -----------------------------------------------------------------------------------------------------------


def mutant(chance: random.Random) -> Specimen:
    """Return a valid file after a change of its values, of its bytes, of both, or of nothing."""
    parent = chance.choice(valid_lines())
    lines = [line for line in parent.data.split(b"\n") if line]
    if chance.random() < 0.6:
        at = chance.randrange(len(lines))
        lines[at] = spell(chance, change(chance, json.loads(lines[at])))
    data = b"\n".join(lines) + b"\n"
    if chance.random() < 0.5:
        data = disturb(chance, data, PIECES, (1, 1, 1, 2, 5))
    return Specimen(parent.kind, data)


def change(chance: random.Random, value: Any) -> Any:
    """Return a JSON value with one place of it changed."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        match chance.randrange(7):
            case 0:
                return {name: item for name, item in value.items() if name != key}
            case 1:
                return {**value, chance.choice(("extra", "commits", "", "ID", "tä")): leaf(chance)}
            case 2:
                return {
                    (name if name != key else name.upper()): item for name, item in value.items()
                }
            case _:
                return {**value, key: change(chance, value[key])}
    if isinstance(value, list) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        match chance.randrange(4):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return [*value, value[at]]
            case _:
                return [*value[:at], change(chance, value[at]), *value[at + 1 :]]
    return _near(chance, value)


def _near(chance: random.Random, value: Any) -> Any:
    """Return a value beside the one given: a step further, or of another type."""
    if isinstance(value, str) and chance.random() < 0.6:
        at = chance.randrange(len(value) + 1)
        return (
            value[:at]
            + chance.choice(("", " ", "0", "-", "é", "/../", "\n", "Z", "x" * 500))
            + value[at + 1 :]
        )
    if isinstance(value, int | float) and not isinstance(value, bool) and chance.random() < 0.6:
        return chance.choice(
            (value + 1, value - 1, -value, float(value), value * 1000, value + 0.5)
        )
    return leaf(chance)


_LEAVES = (
    None, True, False, 0, 1, -1, 1.0, 0.5, 101, 10**19, 1e300, -0.0, "", " ", "a", "01", "01-02", "T1", "major", "none",
    "complete", "backend", "2026-02-19", "2026-02-30", "2026-02-19T08:00:00Z", "../x", "src/a.ts", "abc1234", "😀\u2028",
    "²", "9" * 5000, "٣", "\x00", "\x1b[2J", "a/b~c",
)  # fmt: skip


def leaf(chance: random.Random) -> Any:
    """Return a small value that is wrong in most places and right in some."""
    if chance.random() < 0.15:
        return chance.choice(([], {}, [[]], {"a": {}}, ["a"], [1, "1"]))
    return chance.choice(_LEAVES)


def spell(chance: random.Random, value: Any) -> bytes:
    """Return one of the ways to write a value on a line."""
    separators = chance.choice(((",", ":"), (", ", ": "), (" ,", " :\t")))
    return json.dumps(value, ensure_ascii=chance.random() < 0.5, separators=separators).encode(
        "utf-8", "surrogatepass"
    )


def made_up(chance: random.Random) -> Specimen:
    """Return a file that no example is the parent of."""
    match chance.randrange(4):
        case 0:
            return Specimen(
                "", b"".join(chance.choice(PIECES) for _ in range(chance.randrange(1, 20))) + b"\n"
            )
        case 1:
            return Specimen(
                "", b"".join(spell(chance, {"v": tree(chance)}) + b"\n" for _ in range(4))
            )
        case _:
            name, schema = chance.choice(schemas())
            value = from_schema(chance, schema)
            data = spell(chance, value) + b"\n"
            return Specimen(name, disturb(chance, data, PIECES, (0, 0, 1)))


def tree(chance: random.Random, depth: int = 0) -> Any:
    """Return any JSON value."""
    kind = chance.randrange(8 if depth < 5 else 6)
    if kind == 6:
        return [tree(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind == 7:
        return {chance.choice("abcdé"): tree(chance, depth + 1) for _ in range(chance.randrange(4))}
    return chance.choice(
        (
            leaf(chance),
            chance.randrange(-(10**21), 10**21),
            chance.uniform(-1e9, 1e300),
            'a"\\\u2028',
        )
    )


def from_schema(
    chance: random.Random, schema: Mapping[str, Any], top: Mapping[str, Any] | None = None
) -> Any:
    """Return a value that fits a schema in most of its places. It knows the words that our schemas use."""
    top = top or schema
    if "$ref" in schema:
        return from_schema(chance, top["$defs"][schema["$ref"].rpartition("/")[2]], top)
    if chance.random() < 0.02:
        return leaf(chance)
    for word in ("const", "default"):
        if word in schema and (word == "const" or chance.random() < 0.3):
            return schema[word]
    if "enum" in schema:
        return chance.choice(schema["enum"])
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return from_schema(chance, chance.choice(schema[word]), top)
    return _of_type(chance, schema, top)


def _of_type(chance: random.Random, schema: Mapping[str, Any], top: Mapping[str, Any]) -> Any:
    match schema.get("type"):
        case "object":
            return _members(chance, schema, top)
        case "array":
            count = chance.choice((schema.get("minItems", 0), 1, 2))
            return [from_schema(chance, schema.get("items", {}), top) for _ in range(count)]
        case "string":
            return chance.choice(
                (*schema.get("examples", ()), *schema.get("examples", ()), "a", "")
            )
        case "integer":
            return chance.choice((schema.get("minimum", 0), 1, 7))
        case "number":
            return chance.choice((schema.get("minimum", 0), 0.5, 1))
        case "boolean":
            return chance.random() < 0.5
        case "null":
            return None
        case _:
            return leaf(chance)


def _members(
    chance: random.Random, schema: Mapping[str, Any], top: Mapping[str, Any]
) -> dict[str, Any]:
    required = schema.get("required", ())
    wanted = {
        name: part
        for name, part in schema.get("properties", {}).items()
        if part.get("not") != {} and chance.random() < (0.98 if name in required else 0.5)
    }
    return {name: from_schema(chance, part, top) for name, part in wanted.items()}


# --- front matter ----------------------------------------------------------------------------------------------------


def handoff_mutant(chance: random.Random) -> bytes:
    """Return a good front matter, or a known trick, after a few changes."""
    parent = chance.choice(valid_handoffs() if chance.random() < 0.8 else bad_handoffs())
    return disturb(chance, parent, YAML_PIECES, (0, 1, 1, 1, 2, 3))


def handoff_made_up(chance: random.Random) -> bytes:
    """Return something in the form of a packet, with scalars of every style."""
    indent = chance.choice(("  ", "  ", "  ", "    ", " ", ""))
    head = chance.choice(
        ("handoff:", "handoff:", "handoff:", "handoff: ", '"handoff":', "handoff :", "Handoff:")
    )
    lines = [f"{indent}{_member(chance)}".encode() for _ in range(chance.randrange(1, 6))]
    if chance.random() < 0.1:
        lines.insert(
            chance.randrange(len(lines) + 1),
            chance.choice((b"", b"   ", b"# x", b"---", b"...", b"  -")),
        )
    data = b"\n".join((b"---", head.encode(), *lines, b"---", b"", b"Prose.", b""))
    return disturb(chance, data, YAML_PIECES, (0, 0, 0, 1))


_WORDS = (
    "objective", "a", "b", "Fix it: now", "close #12", "-x", "- x", "?x", ":x", "a:b", "x:", "no", "~", "", "a b", "#",
    "[a]", "{a}", "a]b", "a,b", "it's", 'say "x"', "50%", "%", "@x", "`x`", "a`", "&a", "*a", "!a", "|", ">", "a|b", "<<",
    "=", "...", "---", "--- x", "...x", "é", "日本", "😀", "a\u00a0b", "\u200b", "\ufffe", "\\", "\\n", "0x1F", "a  b", "a #b",
)  # fmt: skip


def _member(chance: random.Random) -> str:
    colon = chance.choice((": ", ": ", ": ", ":  ", ":", " : ", " :"))
    return f"{_text(chance)}{colon}{_text(chance)}{chance.choice(('', '', '', ' ', ' # x'))}"


def _text(chance: random.Random) -> str:
    word = "".join(chance.choice(_WORDS) for _ in range(chance.choice((1, 1, 1, 2))))
    match chance.randrange(4):
        case 0:
            return "'" + word.replace("'", "''") + "'"
        case 1:
            escapes = "".join(
                chance.choice(
                    ("", "\\x41", "\\u00e9", "\\e", "\\/", "\\_", "\\q", "\\0", "\\U00110000")
                )
                for _ in "12"
            )
            return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + escapes + '"'
        case _:
            return word
