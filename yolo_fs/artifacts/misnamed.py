"""Which artifact a file is meant to be whose name, or folder, is nearly right. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from yolo_fs.artifacts.classify import (
    PLANNING_ROOT,
    ROLE_HANDOFF,
    classify,
    name_of_kind,
    place_of_name,
)
from yolo_fs.artifacts.handoff_names import HANDOFF_FOLDER, HANDOFF_ROW
from yolo_fs.artifacts.table import ARTIFACTS, RUNTIME, Artifact, Home, by_kind
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.core.ids import PHASE_DIRECTORY, PhaseId
from yolo_fs.core.reasons import Finding, Level, Reason
from yolo_fs.protocol.departments import WORKING
from yolo_fs.protocol.handoffs import STORAGE, Stored
from yolo_fs.schemas.layout import Format

if TYPE_CHECKING:
    from yolo_fs.artifacts.catalogue import Kind


def artifact_called(name: str) -> Artifact | None:
    """Return the artifact that a file of this name is, or was meant to be; None for none."""
    place = place_of_name(name) or place_of_name(name_meant_by(name))
    return by_kind(place.artifact.kind) if place else None


def kind_called(name: str) -> Kind:
    """Return the kind with a name, or with a file of that name, such as `plan.jsonl`.

    Raises:
        YoloError: as `kind_named`.
    """
    from yolo_fs.artifacts.catalogue import find_kind, kind_named

    artifact = artifact_called(name) if find_kind(name) is None else None
    return kind_named(f"artifact/{artifact.kind}" if artifact else name)


_ENDINGS = (".jsonl", ".json", ".toon")
_DATA = re.compile(r"(?P<stem>.+)\.(?:jsonl?|ndjson|ya?ml|toon)(?:\.(?:txt|md))?", re.IGNORECASE)
"""Names that may be an artifact's; notes, images and the like never are."""
_OF_PROGRAMS = (".#", "._")
"""How names begin that Emacs and macOS make for a moment, or beside a file."""
_COPY = re.compile(
    r"(?P<stem>[^ ()]{1,100}?)(?:\.sync-conflict-[^ .]{1,60}|_conflict-[-0-9]{1,30}"
    r"| \([^()]{0,60}conflict[^()]{0,60}\)| \([0-9]{1,3}\)| [0-9]{1,3}"
    r"| - Copy(?: \([0-9]{1,3}\))?| copy(?: [0-9]{1,3})?)(?P<end>\.[a-z]{2,6})",
    re.IGNORECASE,
)
"""Names that Syncthing, Nextcloud, Dropbox, Google Drive and file managers give to a copy."""
_PREFIXES = {
    word: row.prefix
    for row in WORKING
    for word in (row.name.value, row.prefix.rstrip("-"), *row.nicknames)
    if word
}
"""What people write as the prefix of a department → the correct prefix."""
_BELOW = re.compile(
    rf"(?P<top>{re.escape(PLANNING_ROOT)}/(?:milestones/[^/]+/)?)"
    r"(?:phases?/(?:(?P<phase>[^/]+)/(?:(?P<inner>[^/]+)/)?)?)?(?P<name>[^/]+)"
)
_PHASE_LIKE = re.compile(
    r"(?:phase[-_ ]?)?(?P<number>[0-9]{1,2})(?:[-_ .]+(?P<slug>.+))?", re.IGNORECASE
)
_CLOSE = 0.84
"""Similarity, from 0 to 1, from which on one name is a misspelling of the other."""


def intended_path(path: str) -> str | None:
    """Return the path that a file of the planning tree was probably meant to have, or None."""
    name = path.rpartition("/")[2]
    match = _BELOW.fullmatch(path)
    if not match or classify(path) is not None or name_of_kind(name) is not None:
        return None
    if name.startswith(_OF_PROGRAMS) or any(fnmatchcase(name, pattern) for pattern in RUNTIME):
        return None
    folder, number = _guess_phase_folder(match["phase"] or "")
    meant = _guess_file_name(name, number, match["inner"] or "")
    if meant is None:
        return None
    place = place_of_name(meant.replace("MM", "01").replace("NN", "01"))
    is_of_root = place is not None and place.artifact.home is Home.ROOT
    fresh = f"{match['top']}{'' if is_of_root else f'phases/{folder}/'}{meant}"
    return fresh if fresh != path else None


def name_meant_by(path: str) -> str:
    """Return the file name of the artifact that a file was meant to be, by its own name alone.

    A document counts as well: `01-01-PLAN.md` is meant as `01-01.plan.jsonl`. A plan without
    numbers is given some. Empty for none.
    """
    name = path.rpartition("/")[2]
    return (_guess_file_name(_as_data(name), "01") or "").replace("MM", "01")


def is_document(path: str) -> bool:
    """Return whether a file is text that people read, by its name."""
    is_text = path.lower().endswith((".md", ".markdown", ".txt"))
    return is_text and _DATA.fullmatch(path) is None


def _as_data(name: str) -> str:
    return f"{name.rpartition('.')[0]}.jsonl" if is_document(name) else name


@lru_cache(10_000)
def misnamed(path: str) -> Finding | None:
    """Return a finding about a name that is nearly an artifact's, or None."""
    if original := _find_original(path):
        message = "a copy that a file synchroniser made"
        hint = "Rename the file. If the original exists, add to it what only the copy has, "
        hint += "then remove the copy."
        return Finding(Reason.UNKNOWN_NAME, path, 0, "", message, original, hint)
    guesses = (intended_path, _guess_role_handoff, _guess_handoff_name, _guess_document_name)
    meant = next(filter(None, (guess(path) for guess in guesses)), None)
    if meant is None:
        return _document_instead(path)
    message = "nobody reads or commits a file of this name"
    hint = "Rename the file. If a file of that name exists, add the content to it instead."
    if _PHASE_GAP.search(meant):
        hint += _WHICH_PHASE
    return Finding(Reason.UNKNOWN_NAME, path, 0, "", message, meant, hint)


_PHASE_GAP = re.compile(r"/phases/(?P<number>NN|[0-9]{2}(?=-SLUG/))-(?P<slug>[^/]+)/")
_WHICH_PHASE = " 'yolo-fs phase list' shows the number and the name of each phase."


def with_phase(wrong: Finding, phases: Iterable[PhaseId]) -> Finding:
    """Return the finding on a misnamed file with the phase that is meant, if only one may be.

    `phases`: those of the planning tree.
    """
    gap, place = _PHASE_GAP.search(wrong.expected), place_of_name(wrong.expected)
    if gap is None:
        return wrong
    number = place.plan.phase if place and place.plan else gap["number"].replace("NN", "")
    slug = gap["slug"].replace("SLUG", "")
    known = [
        str(phase)
        for phase in phases
        if number in ("", phase.number) and slug in ("", str(phase).partition("-")[2])
    ]
    if len(known) != 1:
        return wrong
    expected = f"{wrong.expected[: gap.start()]}/phases/{known[0]}/{wrong.expected[gap.end() :]}"
    hint = wrong.hint.removesuffix(_WHICH_PHASE)
    return replace(wrong, expected=expected, hint=hint, command="")


def place_meant_by(wrong: Finding) -> ArtifactPath | None:
    """Return the place that a misnamed file was meant to have; None for a document, which is not
    what its artifact would be.
    """
    if is_document(wrong.path) and not is_document(wrong.expected):
        return None
    return classify(wrong.expected) or place_of_name(wrong.expected)


def is_beside_its_artifact(path: str, *there: Collection[str]) -> bool:
    """Return whether a document lies beside what it was meant for: then it is its author's own.

    One without a number, such as `plan.md`, was meant for any plan of its phase.
    """
    wrong = misnamed(path) if is_document(path) else None
    if wrong is None:
        return False
    folder, _, name = wrong.expected.rpartition("/")
    ending = name.lstrip("0123456789-") if not re.search("[0-9]", path.rpartition("/")[2]) else name
    alike = (known for paths in there for known in paths if known.endswith(ending))
    return any(known.rpartition("/")[0] == folder for known in alike)


def _document_instead(path: str) -> Finding | None:
    """Return a finding about a document with the name of an artifact of its phase, or None."""
    folder, _, name = path.rpartition("/")
    if not is_document(name):
        return None
    number = _guess_phase_folder(folder.rpartition("/")[2])[1]
    meant = f"{folder}/{_guess_file_name(_as_data(name), number)}".replace("MM", "01")
    place = classify(meant)
    if place is None or place.artifact.home is not Home.PHASE:
        return None
    return finding_on_document(path, meant)


def finding_on_document(path: str, meant: str) -> Finding:
    """Return the finding on a document in the place of an artifact. `meant`: its name or path."""
    message = "a document replaces no artifact: nobody reads or commits it"
    form = "TOON" if meant.endswith(".toon") else "JSON lines"
    hint = f"Write the artifact as {form}: 'yolo-fs schema example {meant}' prints one."
    return Finding(Reason.UNKNOWN_NAME, path, 0, "", message, meant, hint)


def _find_original(path: str) -> str | None:
    """Return the artifact whose copy a file is by its name, or None."""
    folder, _, name = path.rpartition("/")
    match = _COPY.fullmatch(name)
    original = f"{folder}/{match['stem']}{match['end']}" if match else ""
    return original if match and classify(original) is not None else None


def misplaced(path: str) -> Finding | None:
    """Return the warning about a file outside the planning tree that is named as an artifact."""
    if (wrong := nested(path)) and classify(wrong.expected):
        return replace(wrong, level=Level.WARNING)
    place = None if path.startswith(f"{PLANNING_ROOT}/") else place_of_name(path)
    if place is None or place.artifact.format not in (Format.JSONL, Format.TOON):
        return None
    folder = f"{PLANNING_ROOT}/{'phases/NN-SLUG/' if place.artifact.home is Home.PHASE else ''}"
    message = f"nobody reads or commits an artifact outside {PLANNING_ROOT}"
    expected, hint = f"{folder}{place.name}", "If the file is an artifact, move it there."
    warning = Level.WARNING
    return Finding(Reason.UNKNOWN_NAME, path, 0, "", message, expected, hint, warning)


def nested(path: str) -> Finding | None:
    """Return the error about a file in a planning tree below the root of the repository, or None.

    It expects the path that the file has in the planning tree at the root.
    """
    folder, mark, below = path.rpartition(f"/{PLANNING_ROOT}/")
    if not mark:
        return None
    message = f"a {PLANNING_ROOT} in {folder} is not watched"
    hint = "Move it to the root of the repository."
    return Finding(Reason.NOT_AN_ARTIFACT, path, 0, "", message, f"{PLANNING_ROOT}/{below}", hint)


def _guess_role_handoff(path: str) -> str | None:
    """Return the path of the HANDOFF.md that a file of nearly its name was meant to be, or None."""
    folder, _, name = path.rpartition("/")
    meant = f"{folder}/{ROLE_HANDOFF.file}"
    is_near = _NEARLY_HANDOFF.fullmatch(name) is not None and name != ROLE_HANDOFF.file
    return meant if is_near and classify(meant) is not None else None


_NEARLY_HANDOFF = re.compile(r"hand[-_ ]?off\.(?:md|markdown|mdx|txt)", re.IGNORECASE)


def _guess_handoff_name(path: str) -> str | None:
    """Return the pattern of handoff names for a misnamed file in the handoff folder, or None."""
    folder, _, name = path.rpartition("/")
    is_data = name.endswith(".json") and not name.startswith(".")
    if folder != HANDOFF_FOLDER or not is_data or classify(path) is not None:
        return None
    return HANDOFF_ROW.name


def _guess_document_name(path: str) -> str | None:
    """Return the name pattern for a misnamed document of the product workflow, or None."""
    folder, _, name = path.rpartition("/")
    stem, _, ending = name.rpartition(".")
    word = re.split(r"[-_. ]", stem)[0].lower()
    rows = [row for row in STORAGE if row.directory == folder and _first_word_of(row) == word]
    alike = [row for row in rows if row.name.endswith(f".{ending}")] or rows
    if (
        not rows
        or ending not in _OF_DOCUMENTS
        or any(_name_pattern_of(row).fullmatch(name) for row in rows)
    ):
        return None
    return f"{folder}/{alike[0].name}"


_OF_DOCUMENTS = ("md", "html", "json")


def _first_word_of(row: Stored) -> str:
    return row.name.partition("_")[0].lower() if row.producer else ""


@cache
def _name_pattern_of(row: Stored) -> re.Pattern[str]:
    """Return a regular expression for the valid names of a document."""
    dated = row.name.replace("[YYYY-MM-DD]", "@")
    named = re.sub(r"\\\[\w+\\\]", "[^/ ]+", re.escape(dated))
    return re.compile(named.replace("@", "[0-9]{4}-[0-9]{2}-[0-9]{2}"))


def _guess_phase_folder(text: str) -> tuple[str, str]:
    """Return the phase directory that a folder name means, and its number; placeholders if
    unknown.
    """
    if PHASE_DIRECTORY.fullmatch(text):
        return text, text[:2]
    match = _PHASE_LIKE.fullmatch(text)
    number = f"{int(match['number']):02}" if match else "NN"
    slug = re.sub(r"[^a-z0-9]+", "-", ((match["slug"] or "") if match else text).lower())
    return f"{number}-{slug.strip('-') or 'SLUG'}", number


def _guess_file_name(name: str, number: str, folder: str = "") -> str | None:
    """Return the artifact's name that a name means, or None.

    `number`: of its phase. `folder`: the name of one within the phase, which may be a department's.
    """
    match = _DATA.fullmatch(name)
    if not match:
        return None
    stem = match["stem"].lower()
    words = [word for word in re.split(r"[-_. ]+", stem) if word]
    prefix = _PREFIXES.get(words[0]) if len(words) > 1 else None
    rest = words if prefix is None else words[1:]
    prefix = _PREFIXES.get(folder.lower()) if prefix is None else prefix
    numbers = [f"{int(word):02}" for word in rest if re.fullmatch(r"[0-9]{1,2}", word)]
    name_words = [word for word in rest if not word.isdigit() and word != "phase"]
    if name_words in (["plan"], ["summary"]) and len(numbers) <= 2:
        own = [number, "MM"] if not numbers else [number, *numbers][-2:]
        return f"{prefix or ''}{'-'.join(own)}.{name_words[0]}.jsonl"
    for form in (f"{prefix or ''}{'-'.join(rest)}", stem):
        if exact := next((form + end for end in _ENDINGS if place_of_name(form + end)), None):
            return exact
    close = _close_name(prefix or "", "-".join(name_words)) if name_words else None
    if close or name.startswith("."):  # a program's, such as `.goutputstream-01-01.plan.jsonl`
        return close
    return _guess_plan_name(prefix, name_words, numbers)


def _guess_plan_name(
    prefix: str | None, words: Sequence[str], numbers: Sequence[str]
) -> str | None:
    """Return the name of a plan or summary whose two numbers stand among other words, or None."""
    kinds = [word for word in words if word in ("plan", "summary")]
    if len(kinds) != 1 or len(numbers) != 2:
        return None
    if prefix is None:
        prefix = next((_PREFIXES[word] for word in words if word in _PREFIXES), "")
    return f"{prefix}{'-'.join(numbers)}.{kinds[0]}.jsonl"


def _close_name(prefix: str, stem: str) -> str | None:
    import difflib  # Costs as much as this module, and only a name without a row needs it.

    names = _map_likely_names()
    near = difflib.get_close_matches(stem, names, 1, _CLOSE)
    if not near:
        return None
    name = names[near[0]]
    return name.replace("{dept}", prefix)


@cache
def _map_likely_names() -> dict[str, str]:
    """Return stem → file name of the artifacts whose name contains no plan and no phase."""
    return dict(_list_stems())


def _list_stems() -> Iterator[tuple[str, str]]:
    for artifact in ARTIFACTS:
        plain = artifact.file.replace("{dept}", "")
        if "{" not in plain and plain.endswith(_ENDINGS):
            yield plain.lstrip(".").rpartition(".")[0], artifact.file
