"""Corrections of a single record that need no decision of its author. Pure.

No value is dropped and unknown keys stay; what cannot be corrected this way is left for the author.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from yolo_fs.artifacts.adoption import TeamWord
from yolo_fs.artifacts.forms import NAME_FIRST, NAMES_NOTHING, moment_of, read_item
from yolo_fs.artifacts.table import required_keys
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.core.ids import PLAN
from yolo_fs.core.reasons import Finding, Reason
from yolo_fs.protocol.departments import WORKING
from yolo_fs.schemas.base import FieldInfo, Form, Shape
from yolo_fs.schemas.fields import fields_of, listed_values, shapes_within, spellings_of
from yolo_fs.schemas.layout import Record, spelling_of
from yolo_fs.schemas.lines.planning import MustHaves, PlanTask, Summary, TurboTask
from yolo_fs.schemas.lines.quality import Verification, VerificationCheck

_KEPT_FORMS = frozenset({
    Form.MOMENT_AS_DAY, Form.DAY_AS_MOMENT, Form.SEVERAL_PLANS, Form.NAMED_COMMIT,
    Form.OBJECT_AS_PATH, Form.SHARE_AS_PERCENT,
})  # fmt: skip
"""Accepted forms that are not converted: the documented form would say less, or need more lines."""

_TIMES = (Form.MOMENT_AS_DAY, Form.DAY_AS_MOMENT)

KEY_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "obj": ("objective", "goal", "purpose", "description", "desc", "summary"),
    "plan": ("plan_id",),
    "id": ("task", "task_id"),
    "tp": ("type",),
    "v": ("verify", "verification", "acceptance", "acceptance_criteria"),
    "a": ("description", "desc", "task"),
    "f": ("file", "files", "path"),
    "ln": ("line", "lines"),
    "s": ("status",),
    "t": ("title", "name"),
    "d": ("depends_on", "deps", "dependencies"),
    "w": ("wave",),
    "built": ("what_built", "what_was_built", "deliverables"),
    "tst": ("test_status", "tests"),
    "st": ("status", "state"),
    "dt": ("date", "timestamp", "day"),
    "ts": ("timestamp", "time", "date", "dt"),
    "dept": ("department",),
    "path": ("file", "f"),
    "fix": ("recommendation", "suggestion", "sug", "remediation"),
    "sk": ("skipped",),
    "err": ("errors",),
    "warn": ("warnings",),
    "notes": ("note", "comment"),
    "c": ("check", "name", "desc", "description"),
    "fm": ("files", "files_modified", "files_changed"),
    "dv": ("deviations",),
    "ch": ("commit_hashes",),
    "sev": ("severity",),
    "cat": ("category",),
    "issue": ("finding", "problem"),
    "sug": ("suggestion", "fix", "recommendation", "rec"),
    "ctx": ("context", "detail", "details", "desc", "description"),
    "q": ("question",),
    "dec": ("decision",),
    "agent": ("by",),
    "reason": ("rationale", "why"),
    "exp": ("expected",),
    "act": ("actual",),
    "desc": ("description",),
    "ps": ("passed",),
    "fl": ("failed",),
    "tt": ("total", "tasks_total", "total_tasks"),
    "r": ("result", "verdict", "status"),
    "conf": ("confidence",),
    "tf": ("test_files", "files"),
    "tc": ("test_count", "tasks_completed", "tasks_complete", "completed_tasks"),
    "ev": ("evidence",),
}  # fmt: skip
"""Required key → synonyms in real planning trees, in addition to the shape's own old names."""

VALUE_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "done": ("complete", "fixed", "addressed"),
    "completed": ("complete",),
    "finished": ("complete",),
    "success": ("complete", "PASS", "pass"),
    "incomplete": ("partial",),
    "error": ("failed", "FAIL", "fail"),
    "blocker": ("critical", "blocking"),
    "high": ("major",),
    "important": ("major",),
    "major": ("high",),
    "medium": ("minor",),
    "moderate": ("medium", "minor"),
    "low": ("minor", "nit"),
    "info": ("nit", "minor", "low"),
    "nit": ("minor",),
    "trivial": ("nit", "minor"),
    "nitpick": ("nit",),
    "approved": ("approve",),
    "lgtm": ("approve",),
    "rejected": ("changes_requested",),
    "request_changes": ("changes_requested",),
    "needs_changes": ("changes_requested",),
    "passed": ("PASS", "pass", "approve"),
    "pass": ("approve",),
    "med": ("medium", "minor"),
    "std": ("standard",),
    "truth": ("must_have",),
    "post_critique": ("post-critic",),
    "pre_critique": ("pre-critic",),
    "passing": ("PASS", "pass"),
    "verified": ("PASS", "pass"),
    "failing": ("FAIL", "fail"),
    "skipped": ("skip", "SKIPPED", "no_tests"),
    "style": ("nit",),
    "suggestion": ("nit", "minor"),
    "note": ("nit", "minor"),
    "cosmetic": ("nit", "minor"),
    "documentation": ("docs",),
    "code": ("codebase",),
    "repository": ("codebase",),
    "internet": ("web",),
    "web_search": ("web",),
    "websearch": ("web",),
    "critical": ("blocking",),
    "pending": ("open",),
    "ok": ("PASS", "pass"),
    "failed": ("FAIL", "fail"),
    "warning": ("WARN", "warn"),
    "resolved": ("addressed", "fixed"),
    "closed": ("addressed", "fixed"),
    "todo": ("open",),
    "opened": ("open",),
    "new": ("open",),
    "wontfix": ("rejected", "accepted"),
    "tdd": ("red_green",),
    "red_green_refactor": ("red_green",),
    "green": ("green_only",),
    "none": ("no_tests",),
    "n/a": ("no_tests", "skip"),
    **{
        word: (row.name.value,)
        for row in WORKING
        for word in filter(None, (row.name.value, row.prefix.rstrip("-"), *row.nicknames))
    },
}
"""Word of real planning trees → words of the protocol; the first that the key allows is used."""


@dataclass(frozen=True, slots=True)
class Correction:
    """Context for the correction of a record."""

    place: ArtifactPath
    root: str
    """Absolute path of the repository; empty if unknown."""
    plans: frozenset[str] = frozenset()
    """Ids of the plans in the same folder."""
    is_autonomous: bool = False
    """No task of the record's plan asks a person."""
    below: Sequence[Mapping[str, Any]] = ()
    """The records below the first."""
    of_plan: Sequence[Mapping[str, Any]] = ()
    """Header and tasks of the plan that a summary belongs to."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """This team's words → their meaning, for the kind of artifact; see `Policy.aliases`."""


def corrected(shape: type[Shape], value: Mapping[str, Any], by: Correction) -> dict[str, Any]:
    """Return an object with every correction that needs no decision."""
    value = _nest_keys(shape, _lift_keys(shape, value))
    fresh = _rename_old_keys(shape, value, by.aliases)
    if issubclass(shape, TurboTask):
        _fill_in_acceptance(value, fresh)
    _split_plan_id(shape, fresh, by.place)
    _add_what_is_told_elsewhere(shape, fresh, by)
    within = shapes_within(shape)
    result, notes = {}, {}
    for key, item in fresh.items():
        field = fields_of(shape).get(key)
        if field is not None and item == "" and _is_left_out(field):
            continue
        if field is None or (item is None and not field.is_required()):
            result[key] = item
            continue
        moment = moment_of(item) if shape.accepts.get(key) in _TIMES else None
        if moment and (note := f"{key}_note") not in fresh:
            item, notes[note] = moment, item
        item = _resolve_alias(field, key, item, by.aliases)
        item = _fitting(field.annotation, _name_of_number(field, item), key)
        item = _strip_root(item, by.root) if _is_path(key) else item
        if (inner := within.get(key)) is not None:
            item = _within(inner, key, item, by)
        form = shape.accepts.get(key)
        is_list = _plain(field.annotation) is list
        if form is not None and isinstance(item, str) and is_list:
            item = [item]
        if form is not None and form not in _KEPT_FORMS and is_list <= isinstance(item, list):
            item = _apply_form(form, item, by)
        is_said = field.is_required() or field.default is not None or _fits(field, item)
        # An invalid optional value moves to a note: its absence has no meaning, and the words are
        # kept.
        result[key if is_said or f"{key}_note" in fresh else f"{key}_note"] = item
    result |= notes
    if "ch" in fields_of(shape) and result.get("s") == "complete" and "tc" in result:
        result.setdefault("tt", result["tc"])  # a plan is complete when all of its tasks are
    return result


def unwrapped(value: Mapping[str, Any], shapes: Iterable[type[Shape]]) -> Mapping[str, Any]:
    """Return the record that an object of one key wraps, as `{"task": {…}}` does; an object that
    wraps none is unchanged.

    `shapes`: those that a record of the file may have.
    """
    key, inner = next(iter(value.items())) if len(value) == 1 else ("", None)
    if not isinstance(inner, dict):
        return value
    return inner if any(_is_record(shape, key, inner) for shape in shapes) else value


def _is_record(shape: type[Shape], wrapper: str, inner: Mapping[str, Any]) -> bool:
    own = _lift_keys(shape, inner).keys()
    is_known = len(_names_in(shape) & own) > 1 or required_keys(shape) <= own
    return is_known and wrapper not in shapes_within(shape)


def _names_in(shape: type[Shape]) -> set[str]:
    return {*fields_of(shape), *shape.renamed_keys}


def _lift_keys(shape: type[Shape], value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object with the keys of its own that an unknown key wraps."""
    names, fresh = _names_in(shape), dict[str, Any]()
    for key, item in value.items():
        is_wrapper = key not in names and isinstance(item, dict) and bool(item)
        taken = value.keys() | fresh.keys()  # of two wrappers, neither loses a value to the other
        if is_wrapper and not item.keys() & taken and item.keys() <= names:
            fresh |= item
        else:
            fresh[key] = item
    return fresh


def _nest_keys(shape: type[Shape], value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object with the keys of a required object that are beside it, not within it."""
    fresh = dict(value)
    said = {shape.renamed_keys.get(key, key) for key in value}
    for key, inner in shapes_within(shape).items():
        field = fields_of(shape)[key]
        if key in said or not field.is_required() or _plain(field.annotation) is list:
            continue
        own = {name: value[name] for name in _names_in(inner) - _names_in(shape) if name in value}
        present = {inner.renamed_keys.get(name, name) for name in own}
        if own and (inner is MustHaves or required_keys(inner) <= present):
            fresh = {name: item for name, item in fresh.items() if name not in own} | {
                key: {name: item for name, item in value.items() if name in own}
            }
    return fresh


def _fill_in_acceptance(value: Mapping[str, Any], fresh: dict[str, Any]) -> None:
    """Fill in `done` from the acceptance criteria or `v`, or `v` from `done`, where a task leaves
    it out. `done` is only filled in where there is a `v`. A boolean `done` moves to `done_note`
    first.
    """
    if isinstance(fresh.get("done"), bool) and "done_note" not in fresh:
        fresh["done_note"] = fresh.pop("done")
    for word in (*_ACCEPTANCE, "v"):
        if fresh.get("v") and (acceptance := value.get(word, fresh.get(word))):
            fresh.setdefault("done", acceptance)
    if isinstance(fresh.get("done"), str):
        fresh.setdefault("v", fresh["done"])


def _resolve_alias(field: FieldInfo, key: str, item: Any, aliases: Mapping[str, str]) -> Any:
    """Return the listed value that a team's word stands for; a listed word stands for itself."""
    listed = listed_values(field)
    meant = aliases.get(f"{key}={item}") if isinstance(item, str) and item not in listed else None
    return meant if meant in listed else item


def _within(inner: type[Shape], key: str, item: Any, by: Correction) -> Any:
    if inner is MustHaves:
        item = _must_haves(item)
    if isinstance(item, dict):
        return corrected(inner, item, by)
    if isinstance(item, list):
        return [corrected(inner, part, by) if isinstance(part, dict) else part for part in item]
    return item


def _must_haves(item: Any) -> Any:
    """Return must-haves as their three lists; an absent list is empty."""
    if isinstance(item, dict):
        present = {MustHaves.renamed_keys.get(key, key) for key in item}
        return {**item, **{key: [] for key in fields_of(MustHaves) if key not in present}}
    truths = [item] if isinstance(item, str) and item else item or []
    return {"tr": truths, "ar": [], "kl": []} if isinstance(truths, list) else item


def _is_left_out(field: FieldInfo) -> bool:
    """Return whether an empty string in place of a listed value means that there is none."""
    listed = typing.get_args(field.annotation)
    return bool(listed_values(field)) and not field.is_required() and "" not in listed


def _apply_form(form: Form, item: Any, by: Correction) -> Any:
    if isinstance(item, list):
        return [_apply_form(form, part, by) for part in item]
    if isinstance(item, str) and NAME_FIRST.fullmatch(item):
        return item  # the words behind a name would be lost
    return read_item(form, item, by.place, by.plans)


def _rename_old_keys(
    shape: type[Shape], value: Mapping[str, Any], aliases: Mapping[str, str]
) -> dict[str, Any]:
    """Return the object with old names and synonyms of required keys renamed as in the protocol."""
    value = _spell_keys(shape, value)
    wanted: dict[str, str] = {}
    keys = fields_of(shape).keys()
    own = {old: new for old, new in aliases.items() if new in keys and old not in keys}
    for old, new in {**shape.renamed_keys, **own}.items():
        if old in value and new not in value and new not in wanted.values():
            wanted[old] = new
    for new, words in KEY_SYNONYMS.items():
        field = fields_of(shape).get(new)
        if field is None or not field.is_required() or new in value or new in wanted.values():
            continue
        for word in words:
            if word in value and word not in fields_of(shape) and word not in wanted:
                wanted[word] = new
                break
    fits = {old: new for old, new in wanted.items() if _can_fit(shape, new, value[old])}
    return {fits.get(key, key): item for key, item in value.items()}


def _spell_keys(shape: type[Shape], value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object with keys such as `tasksCompleted` or `Test-Files` spelled as they are
    known: as keys of the shape, old ones, or synonyms.
    """
    keys = fields_of(shape).keys()
    synonyms = (word for key in keys & KEY_SYNONYMS.keys() for word in KEY_SYNONYMS[key])
    known = {**{spelling_of(word): word for word in synonyms}, **spellings_of(shape)}
    spelled = {key: known[spelling_of(key)] for key in value if spelling_of(key) in known}
    fresh = {
        key: meant
        for key, meant in spelled.items()
        if meant not in value and (meant not in keys or _can_fit(shape, meant, value[key]))
    }
    is_one = {meant for meant in fresh.values() if list(fresh.values()).count(meant) == 1}
    return {fresh[key] if fresh.get(key) in is_one else key: item for key, item in value.items()}


_SHARE = re.compile(r"([0-9]{1,4}) ?(?:/|of) ?([0-9]{1,4})")
"""A ratio, such as `3/4` or `3 of 4`."""


def _can_fit(shape: type[Shape], key: str, item: Any) -> bool:
    """Return whether a value has the type of a key, or can be converted to it."""
    wanted = _plain(fields_of(shape)[key].annotation)
    if key == "tc" and isinstance(item, str) and _SHARE.fullmatch(item):
        return True
    if key in shapes_within(shape) or wanted is None:
        return True
    return isinstance(_fitting(fields_of(shape)[key].annotation, item, key), wanted)


def _plain(annotation: Any) -> type | None:
    origin = typing.get_origin(annotation) or annotation
    if origin is typing.Annotated:
        return _plain(typing.get_args(annotation)[0])
    if origin is Literal:
        return str
    return origin if origin in (str, int, float, bool, list, dict) else None


def _split_plan_id(shape: type[Shape], value: dict[str, Any], place: ArtifactPath) -> None:
    """Split `p`: `NN-MM`, and set `n` to its number where it is the title, as in older plans."""
    plan = value.get("p")
    if shape.accepts.get("p") is not Form.OWN_PHASE or not isinstance(plan, str):
        return
    number = place.plan.number if place.plan else ""
    if PLAN.fullmatch(plan):
        number = plan[3:]
    title = value.get("n")
    if "n" not in value and PLAN.fullmatch(plan):
        value["n"] = number
    elif number and isinstance(title, str) and re.search(r"[A-Za-z]{3}", title):
        if "plan" in title.casefold():
            return
        if isinstance(value.get("t"), str):
            value["name"] = title
        else:
            if "t" in value:
                value["task_count"] = value["t"]
            value["t"] = title
        value["n"] = number


def _add_what_is_told_elsewhere(shape: type[Shape], value: dict[str, Any], by: Correction) -> None:
    """Add what the file name, the plan, or another key of the object already says."""
    place = by.place
    if shape is PlanTask and by.is_autonomous:
        value.setdefault("tp", "auto")
    if shape is Verification and by.below:
        _count_checks(value, by.below)
    if shape.accepts.get("p") is Form.OWN_PHASE and place.plan is not None and value:
        missing = {"p": place.plan.phase, "n": place.plan.number}
        for key in missing.keys() - value.keys():
            value[key] = missing[key]
        if "w" in fields_of(shape) and "w" not in value and value.get("d") == []:
            value["w"] = 1  # the wave follows from what a plan depends on
        if "d" in fields_of(shape) and "d" not in value and value.get("w") in (1, "1"):
            value["d"] = []  # nothing is before the first wave
    share = value.get("tc")
    if "tt" in fields_of(shape) and isinstance(share, str):
        match = _SHARE.fullmatch(share)
        if match and str(value.get("tt", match[2])) == match[2]:
            value["tc"], value["tt"] = int(match[1]), int(match[2])
    if shape is Summary:
        _add_what_the_plan_tells(value, by.of_plan)
    _keep_beside(shape, value)


def _add_what_the_plan_tells(value: dict[str, Any], plan: Sequence[Mapping[str, Any]]) -> None:
    """Add the title and the number of tasks to a summary that leaves them out."""
    if not plan or not isinstance(plan[0].get("t"), str):
        return
    value.setdefault("t", plan[0]["t"])
    tasks, done = len(plan) - 1, value.get("tc")
    if value.get("s") == "complete":
        value.setdefault("tc", value.get("tt", tasks))  # complete: all of its tasks are
    if done is None or (isinstance(done, int) and done <= tasks):
        value.setdefault("tt", tasks)
    if not _SPEAKS_OF_TESTS.search(str([list(each.values()) for each in (value, *plan)])):
        value.setdefault("tst", "no_tests")  # neither of the two speaks of any


_SPEAKS_OF_TESTS = re.compile(r"(?<!la)test|[._-]spec|\bbats", re.IGNORECASE)


def _count_checks(value: dict[str, Any], checks: Sequence[Mapping[str, Any]]) -> None:
    """Add the counts of the checks below the header of a verification."""
    results = [str(check.get("r", check.get("result"))).casefold() for check in checks]
    counts = {"ps": results.count("pass"), "fl": results.count("fail"), "tt": len(results)}
    if counts["ps"] + counts["fl"] + results.count("warn") == len(results):
        value.update({key: count for key, count in counts.items() if key not in value})


def _keep_beside(shape: type[Shape], value: dict[str, Any]) -> None:
    """Reduce a value to what its key can hold; the full value is kept under another key."""
    keys, line, cases = fields_of(shape), value.get("ln"), value.get("tc")
    source = value.get("src")
    if "ln" in keys and isinstance(line, str) and (match := _LINES.fullmatch(line)):
        value["ln"], value["lines"] = int(match[1]), line
    elif "ln" in value and line is None:
        value["ln"] = 0  # of the whole file
    elif "ln" in keys and line in NAMES_NOTHING:
        value["ln"], value["lines"] = 0, line
    if "tf" in keys and isinstance(cases, list) and cases:
        value["tc"], value["cases"] = len(cases), cases
    if "src" in keys and isinstance(source, str) and source.startswith(("http://", "https://")):
        value["src"], value["url"] = "web", source
    elif "src" in keys and isinstance(source, str) and (match := _FIRST_WORD.match(source)):
        first = match[1].casefold()
        if source != first and first in listed_values(keys["src"]) and "source" not in value:
            value["src"], value["source"] = first, source
    category = value.get("cat")
    match = re.match(r"mh(?:\.(tr|ar|kl))?\b", category) if isinstance(category, str) else None
    if shape is VerificationCheck and match and "ref" not in value:
        value["cat"], value["ref"] = _OF_MUST_HAVES[match[1]], category
    for key in _KINDS_OF & keys.keys():
        listed, text = listed_values(keys[key]), value.get(key)
        match = _WORD_FIRST.fullmatch(text) if isinstance(text, str) else None
        if match and _simplify_word(match[1]) in listed and f"{key}_note" not in value:
            value[key], value[f"{key}_note"] = _simplify_word(match[1]), text


def _fits(field: FieldInfo, item: Any) -> bool:
    """Return whether the value of an optional key has its type, and is a listed value."""
    if listed := listed_values(field):
        return item in listed
    if field.annotation is Any or isinstance(item, dict):
        return True  # an object is more than words
    parts = [_plain(part) for part in (field.annotation, *typing.get_args(field.annotation))]
    return isinstance(item, tuple(part for part in parts if part is not None) or dict)


_ACCEPTANCE = ("ac", "acceptance", "acceptance_criteria")
"""Keys of a task for its acceptance criteria."""
_KINDS_OF = frozenset({"tst", "tier", "src", "cat", "conf"})
"""Keys whose listed value may be followed by a remark. A verdict or a status may not: the remark
may take it back."""
_WORD_FIRST = re.compile(r"([A-Za-z]+(?:[-_ ][A-Za-z]+)?) ?(?:\(.*\)|[:;—–] ?.*| - .*)", re.DOTALL)
_FIRST_WORD = re.compile(r"([A-Za-z]+)\b")
_OF_MUST_HAVES = {"tr": "must_have", "ar": "artifact", "kl": "key_link", None: "must_have"}
"""Part of the must-haves that a check covers → its category."""
_LINES = re.compile(r"L?([0-9]{1,9}) ?[-–,:] ?L?[0-9].*")
"""A range of lines; the first line is used."""


def _fitting(annotation: Any, item: Any, key: str) -> Any:
    """Return a value converted to the type of a key, where its text stays the same."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        [*wanted] = (part for part in typing.get_args(annotation) if part is not type(None))
        return _fitting(wanted[0], item, key) if len(wanted) == 1 else item
    if origin is typing.Annotated:
        return _fitting(typing.get_args(annotation)[0], item, key)
    if origin is Literal:
        return _match_listed_value(typing.get_args(annotation), item)
    if origin is list:
        return _listed(typing.get_args(annotation)[0], item, key)
    if annotation is str:
        return _as_text(item, key)
    if annotation in (int, float) and isinstance(item, str):
        match = re.fullmatch(_WHOLE_NUMBER, item.strip(), re.IGNORECASE)
        return int(match[1]) if match else item
    if annotation is int and item == []:
        return 0  # an empty list of what is counted
    if annotation is bool and isinstance(item, str):
        return {"true": True, "false": False}.get(item.strip().casefold(), item)
    if annotation is int and isinstance(item, float) and item.is_integer():
        return int(item)
    return item


_WHOLE_NUMBER = r"(?:wave |line |L)?([0-9]{1,9})(?:\.0)? ?%?"


def _listed(member: Any, item: Any, key: str) -> Any:
    if item is None or (isinstance(item, str) and item in NAMES_NOTHING and key in ("d", "td")):
        return []
    if isinstance(item, str) and item and (member is Any or _plain(member) is str):
        item = re.split(_SEPARATOR, item) if _is_path(key) or _is_a_word(member) else [item]
    if isinstance(item, list):
        described = FieldInfo.from_annotation(member)
        return [_fitting(member, _name_of_number(described, part), key) for part in item]
    return item


_SEPARATOR = r"[,;] +"


def _is_a_word(member: Any) -> bool:
    """Return whether a member of a list is a name or a listed value: none has a comma in it."""
    described = FieldInfo.from_annotation(member)
    has_pattern = any(getattr(each, "pattern", None) for each in described.metadata)
    return has_pattern or bool(listed_values(described))


_LETTER_AND_NUMBER = re.compile(r"\^(?P<letter>[A-Z])\[1-9\]\[0-9\]\*\$")
"""The pattern of names such as `T1` and `C1`."""


def _name_of_number(field: FieldInfo, item: Any) -> Any:
    """Return the name that a bare number stands for, such as `T1` for 1, or the value as it is."""
    patterns = (getattr(each, "pattern", None) or "" for each in field.metadata)
    match = next(filter(None, map(_LETTER_AND_NUMBER.fullmatch, patterns)), None)
    is_number = match is not None and type(item) is int and item > 0
    return f"{match['letter']}{item}" if match and is_number else item


_NUMBERS_OF = frozenset({"p", "n", "ph", "phase", "from_phase", "to_phase"})
"""Keys of the number of a phase or a plan, which has two digits."""
_DIGIT = re.compile(r"[0-9]")


def _as_text(item: Any, key: str) -> Any:
    if isinstance(item, bool) or item is None:
        return item
    if key in _NUMBERS_OF and (isinstance(item, int) or _DIGIT.fullmatch(str(item))):
        return f"{int(item):02}"
    if isinstance(item, int | float):
        return str(item)
    if isinstance(item, list) and item and all(isinstance(part, str | int) for part in item):
        return "; ".join(str(part) for part in item)
    return item


def _match_listed_value(allowed: tuple[Any, ...], item: Any) -> Any:
    """Return the listed value that a word means, or the word itself."""
    if not isinstance(item, str) or item in allowed:
        return item
    word = _simplify_word(item)
    same = [value for value in allowed if _simplify_word(str(value)) in (word, word.rstrip("s"))]
    if len(same) == 1:
        return same[0]
    meant = VALUE_SYNONYMS.get(word) or VALUE_SYNONYMS.get(item.strip().casefold()) or ()
    return next((value for value in meant if value in allowed), item)


def _simplify_word(text: str) -> str:
    bare = re.sub(r"^[^A-Za-z0-9]+|[^A-Za-z0-9]+$", "", text)
    return re.sub(r"[\s/-]+", "_", bare.casefold())


def _is_path(key: str) -> bool:
    return key in ("f", "fm", "tf", "p", "path", "file")


def _strip_root(item: Any, root: str) -> Any:
    if isinstance(item, list):
        return [_strip_root(part, root) for part in item]
    if root and isinstance(item, str) and item.startswith(f"{root}/"):
        return item[len(root) + 1 :]
    return item


def words_of(
    place: ArtifactPath, records: Sequence[Record], findings: Iterable[Finding]
) -> Iterator[TeamWord]:
    """Yield a team's own words for an absent key, if unambiguous, and for listed values."""
    values = {record.line: record.value for record in records}
    shapes = {record.line: shape for record, shape in place.artifact.shapes_of(records)}
    absent: dict[int, list[str]] = {}
    for finding in findings:
        key, record = finding.at[1:], values.get(finding.line)
        if record is None or not key or "/" in key:
            continue
        shape = shapes[finding.line]
        field = fields_of(shape).get(key) if shape else None
        if field is None:
            continue
        if finding.reason is Reason.MISSING_KEY:
            absent.setdefault(finding.line, []).append(key)
        elif finding.reason is Reason.UNKNOWN_VALUE and isinstance(record.get(key), str):
            words = f"{key}={record[key]}"
            yield TeamWord(place.artifact.kind, words, "", listed_values(field))
    for line, keys in absent.items():
        shape = shapes[line]
        if shape is None or len(keys) > 1:
            continue
        unknown = values[line].keys() - fields_of(shape).keys() - shape.renamed_keys.keys()
        fitting = [word for word in unknown if _can_fit(shape, keys[0], values[line][word])]
        if len(fitting) == 1:
            yield TeamWord(place.artifact.kind, fitting[0], keys[0])
