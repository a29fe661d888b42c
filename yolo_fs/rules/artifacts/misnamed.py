"""From a name that nearly is an artifact's to the one that was probably meant. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache

from yolo_fs.ids import PHASE_DIRECTORY
from yolo_fs.protocol.departments import WORKING
from yolo_fs.protocol.storage import STORAGE, Stored
from yolo_fs.reasons import Finding, Reason
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.rules.artifacts.handoff_names import HANDOFF_FOLDER, HANDOFF_ROW
from yolo_fs.rules.artifacts.recognise import kind_of_name, place_of_name
from yolo_fs.rules.artifacts.table import ARTIFACTS, RUNTIME, Home

_ENDINGS = (".jsonl", ".json", ".toon")
_DATA = re.compile(r"(?P<stem>.+)\.(?:json|jsonl|ndjson|toon)", re.IGNORECASE)
"""Names that may be an artifact's; notes, images and the like are nobody's artifact."""
_PREFIXES = {
    word: row.prefix
    for row in WORKING
    for word in (row.name.value, row.prefix.rstrip("-"), *row.nicknames)
}
"""What people write before a name for a department → the prefix that is meant."""
_BELOW = re.compile(
    rf"(?P<top>{re.escape(PLANNING_ROOT)}/(?:milestones/[^/]+/)?)"
    r"(?:phases?/(?:(?P<phase>[^/]+)/(?:[^/]+/)?)?)?(?P<name>[^/]+)"
)
_PHASE_LIKE = re.compile(
    r"(?:phase[-_ ]?)?(?P<number>[0-9]{1,2})(?:[-_ .]+(?P<slug>.+))?", re.IGNORECASE
)
_CLOSE = 0.84
"""How alike two names are, from 0 to 1, of which one is a misspelling of the other."""


def intended_path(path: str) -> str | None:
    """Return the path that a file of the planning tree was probably meant to have; None for all
    others.
    """
    name = path.rpartition("/")[2]
    found = _BELOW.fullmatch(path)
    if not found or classify(path) is not None or kind_of_name(name) is not None:
        return None
    if any(fnmatchcase(name, pattern) for pattern in RUNTIME):
        return None
    folder, number = _phase_folder(found["phase"] or "")
    meant = _intended_name(name, number)
    if meant is None:
        return None
    place = place_of_name(meant.replace("MM", "01").replace("NN", "01"))
    is_of_root = place is not None and place.artifact.home is Home.ROOT
    fresh = f"{found['top']}{'' if is_of_root else f'phases/{folder}/'}{meant}"
    return fresh if fresh != path else None


def misnamed(path: str) -> Finding | None:
    """Return the finding about a name that nearly is an artifact's, or None."""
    meant = intended_path(path) or _intended_handoff(path) or _intended_document(path)
    if meant is None:
        return None
    message = "nearly the name of an artifact; as it is, nobody reads or commits the file"
    return Finding(Reason.UNKNOWN_NAME, path, 0, "", message, meant, "Rename the file.")


def _intended_handoff(path: str) -> str | None:
    """Return the form of a handoff's name for what lies among the product handoffs under another
    one.
    """
    folder, _, name = path.rpartition("/")
    is_data = name.endswith(".json") and not name.startswith(".")
    if folder != HANDOFF_FOLDER or not is_data or classify(path) is not None:
        return None
    return HANDOFF_ROW.name


def _intended_document(path: str) -> str | None:
    """Return the form of a name for a document of the product workflow that has nearly one."""
    folder, _, name = path.rpartition("/")
    stem, _, ending = name.rpartition(".")
    word = re.split(r"[-_. ]", stem)[0].lower()
    rows = [row for row in STORAGE if row.directory == folder and _first_word(row) == word]
    alike = [row for row in rows if row.name.endswith(f".{ending}")] or rows
    if not rows or ending not in _OF_DOCUMENTS or any(_form(row).fullmatch(name) for row in rows):
        return None
    return f"{folder}/{alike[0].name}"


_OF_DOCUMENTS = ("md", "html", "json")


def _first_word(row: Stored) -> str:
    return row.name.partition("_")[0].lower() if row.producer else ""


@cache
def _form(row: Stored) -> re.Pattern[str]:
    """Return the names that the form of a document allows."""
    dated = row.name.replace("[YYYY-MM-DD]", "@")
    named = re.sub(r"\\\[\w+\\\]", "[^/ ]+", re.escape(dated))
    return re.compile(named.replace("@", "[0-9]{4}-[0-9]{2}-[0-9]{2}"))


def _phase_folder(text: str) -> tuple[str, str]:
    """Return the phase directory that a folder's name means, and its number; placeholders for what
    it leaves out.
    """
    if PHASE_DIRECTORY.fullmatch(text):
        return text, text[:2]
    found = _PHASE_LIKE.fullmatch(text)
    number = f"{int(found['number']):02}" if found else "NN"
    slug = re.sub(r"[^a-z0-9]+", "-", ((found["slug"] or "") if found else text).lower())
    return f"{number}-{slug.strip('-') or 'SLUG'}", number


def _intended_name(name: str, number: str) -> str | None:
    found = _DATA.fullmatch(name)
    if not found:
        return None
    stem = found["stem"].lower()
    words = [word for word in re.split(r"[-_. ]+", stem) if word]
    prefix = _PREFIXES.get(words[0]) if len(words) > 1 else None
    rest = words if prefix is None else words[1:]
    numbers = [f"{int(word):02}" for word in rest if re.fullmatch(r"[0-9]{1,2}", word)]
    said = [word for word in rest if not word.isdigit() and word != "phase"]
    if said in (["plan"], ["summary"]) and len(numbers) <= 2:
        own = [number, "MM"] if not numbers else [number, *numbers][-2:]
        return f"{prefix or ''}{'-'.join(own)}.{said[0]}.jsonl"
    for form in (stem, f"{prefix or ''}{'-'.join(rest)}"):
        if exact := next((form + end for end in _ENDINGS if place_of_name(form + end)), None):
            return exact
    return _close_name(prefix or "", "-".join(said)) if said else None


def _close_name(prefix: str, stem: str) -> str | None:
    names = _names()
    near = difflib.get_close_matches(stem, names, 1, _CLOSE)
    if not near:
        return None
    name = names[near[0]]
    return name.replace("{dept}", prefix)


@cache
def _names() -> dict[str, str]:
    """Return stem → file name of the artifacts that are not named after a plan or a phase."""
    return dict(_stems())


def _stems() -> Iterator[tuple[str, str]]:
    for artifact in ARTIFACTS:
        plain = artifact.file.replace("{dept}", "")
        if "{" not in plain and plain.endswith(_ENDINGS):
            yield plain.lstrip(".").rpartition(".")[0], artifact.file
