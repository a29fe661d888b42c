"""The only place where records are converted to their documented form, before anything else reads
them. Pure.

Real agents write some values in other forms with the same meaning. The shapes declare which of them
are accepted (`Shape.accepts`); each is converted here and reported as a `should`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin

from yolo_fs.artifacts.table import Artifact
from yolo_fs.artifacts.verdicts import ArtifactPath, Located
from yolo_fs.core.ids import PLAN
from yolo_fs.core.reasons import Fault, Grade, Reason
from yolo_fs.schemas.base import FieldInfo, Form, Shape
from yolo_fs.schemas.fields import (
    fields_of,
    is_whole,
    listed_values,
    may_be_absent,
    must_say_something,
    shapes_within,
)
from yolo_fs.schemas.layout import Record


class Normal(NamedTuple):
    """Records in their documented form."""

    records: tuple[Record, ...]
    """One line becomes several records where it covers several plans."""
    faults: tuple[Located, ...]
    """One for each value that was in another form."""


class _Value(NamedTuple):
    """A value in its documented form."""

    value: Any
    missing: tuple[str, ...] = ()
    """Plans that it refers to and that do not exist yet."""


class _Known(NamedTuple):
    """What the parsers of forms may use."""

    place: ArtifactPath
    plans: Collection[str]
    """Ids of the plans in the artifact's folder."""

    @property
    def phase(self) -> str:
        """The number of the artifact's phase, two digits; empty when its path does not say it."""
        if self.place.plan:
            return self.place.plan.phase
        return self.place.phase.number if self.place.phase else ""


def normalise(
    place: ArtifactPath, records: Sequence[Record], plans: Collection[str] = ()
) -> Normal:
    """Return the records in their documented form. `plans`: ids of those in the same folder."""
    known = _Known(place, plans)
    faults: list[Located] = []
    normal: list[Record] = []
    records, copies = _drop_copies(place.artifact, records)
    for record, shape in place.artifact.shapes_of(records):
        value = record.value
        if shape is not None:
            record_faults: list[Fault] = []
            value = _read(shape, record.value, known, record_faults, "")
            faults += [(record.line, fault) for fault in record_faults]
        normal += [Record(record.line, each) for each in _split_by_plan(value)]
    return Normal(tuple(normal), (*faults, *copies))


def _drop_copies(
    artifact: Artifact, records: Sequence[Record]
) -> tuple[Sequence[Record], list[Located]]:
    """Return the records without exact copies of an earlier one, where the artifact allows none."""
    if artifact.may_repeat_lines or len(records) < 2:
        return records, []
    lines: dict[str, int] = {}
    once: list[Record] = []
    copies: list[Located] = []
    for record in records:
        line = lines.setdefault(repr(record.value), record.line)
        if line == record.line:
            once.append(record)
        else:
            message = f"the line is a copy of line {line}"
            copies.append((record.line, _fault("", Reason.DUPLICATE_ID, message, "each line once")))
    return once, copies


def read_item(form: Form, value: Any, place: ArtifactPath, plans: Collection[str] = ()) -> Any:
    """Return one value in its documented form, or as it is."""
    read = FORMS[form](value, _Known(place, plans))
    return value if read is None or read.missing else read.value


def _split_by_plan(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    plans = value.get("plan")
    if not isinstance(plans, tuple):
        yield value
    for plan in plans if isinstance(plans, tuple) else ():
        yield {**value, "plan": plan}


def _read(
    shape: type[Shape], value: Mapping[str, Any], known: _Known, faults: list[Fault], at: str
) -> dict[str, Any]:
    """Return an object in its documented form."""
    fresh, fields, lists = dict(value), fields_of(shape), _list_keys_of(shape)
    _read_old_names(shape, fresh)
    if "plans" in fresh and isinstance(fresh.get("plan"), str):
        _join_plans(shape, fresh, known)
    for key, item in value.items():
        field = fields.get(key)
        if field is None or key not in fresh:
            continue
        if _has_no_value(field, item):
            # An empty optional value means the same as an absent one.
            del fresh[key]
            faults.append(_fault(f"{at}/{key}", Reason.EMPTY_VALUE, "", "a value, or no such key"))
        elif isinstance(item, float) and item.is_integer() and is_whole(field):
            fresh[key] = int(item)
            message = f"{item} is a whole number"
            faults.append(_fault(f"{at}/{key}", Reason.UNTIDY_FORM, message, f"{int(item)}"))
        elif isinstance(item, list) and None in item:
            fresh[key] = [part for part in item if part is not None]
            faults.append(
                _fault(f"{at}/{key}", Reason.EMPTY_VALUE, "null is not a value", "no null")
            )
    for key, form in shape.accepts.items():
        field = fields.get(key)
        if key in fresh and (field is None or (key in lists) <= isinstance(fresh[key], list)):
            fresh[key] = _read_value(form, fresh[key], known, faults, f"{at}/{key}")
    if "xd" in shape.accepts and known.phase:
        _move_foreign(fresh, known, faults, at)
        _move_own(fresh, known, faults, at)
    for key, inner in shapes_within(shape).items():
        item = fresh.get(key)
        if isinstance(item, dict):
            fresh[key] = _read(inner, item, known, faults, f"{at}/{key}")
        elif isinstance(item, list):
            fresh[key] = [
                _read(inner, part, known, faults, f"{at}/{key}/{index}")
                if isinstance(part, dict)
                else part
                for index, part in enumerate(item)
            ]
    return fresh


@cache
def _list_keys_of(shape: type[Shape]) -> frozenset[str]:
    """Return the keys whose documented value is a list: no form turns anything else into one."""
    types = ((key, field.annotation) for key, field in fields_of(shape).items())
    return frozenset(
        key
        for key, type_ in types
        if any(get_origin(each) is list for each in (type_, *get_args(type_)))
    )


def _has_no_value(field: FieldInfo, item: Any) -> bool:
    """Return whether an optional key has no value: null or an empty string."""
    if field.is_required():
        return item is None and may_be_absent(field)
    is_free_text = field.annotation is str and not must_say_something(field)
    return item is None or (item == "" and not listed_values(field) and not is_free_text)


def _read_old_names(shape: type[Shape], value: dict[str, Any]) -> None:
    """Rename an optional key's old name if its value is a text or a list; `check` reports it."""
    for old, new in shape.renamed_keys.items():
        field = fields_of(shape)[new]
        if (
            old in value
            and new not in value
            and (may_be_absent(field) or not field.is_required())
            and isinstance(value[old], list if new in _list_keys_of(shape) else str)
        ):
            value[new] = value[old]


def _join_plans(shape: type[Shape], value: dict[str, Any], known: _Known) -> None:
    """Merge the plans that a review lists beside its `plan` into it."""
    several = value["plans"]
    if shape.accepts.get("plan") is not Form.SEVERAL_PLANS or not isinstance(several, list):
        return
    names = [_plan_id(str(name), known) for name in several]
    if names and all(name in known.plans for name in names) and PLAN.fullmatch(value["plan"]):
        value["plan"] = ", ".join(dict.fromkeys([value["plan"], *map(str, names)]))


def _move_foreign(value: dict[str, Any], known: _Known, faults: list[Fault], at: str) -> None:
    """Move the plans of other phases from `d` to `xd`, and drop a dependency on itself."""
    needs, foreign = value.get("d"), value.get("xd", [])
    if not isinstance(needs, list) or not isinstance(foreign, list):
        return
    own = []
    for index, name in enumerate(needs):
        if name == str(known.place.plan):
            message = "the plan names itself"
            faults.append(_fault(f"{at}/d/{index}", Reason.SELF_REFERENCE, message, "another plan"))
            continue
        is_foreign = isinstance(name, str) and PLAN.fullmatch(name) and name[:2] != known.phase
        read = _text_as_dependency(name, None) if is_foreign else None
        if read is None:
            own.append(name)
            continue
        foreign = [*foreign, read.value]
        message = f"plan {name} is of another phase; it is read as a member of `xd`"
        faults.append(_fault(f"{at}/d/{index}", Reason.UNTIDY_FORM, message, _shown(read.value)))
    if len(own) < len(needs):
        value["d"], value["xd"] = own, foreign


def _move_own(value: dict[str, Any], known: _Known, faults: list[Fault], at: str) -> None:
    """Move the plans of this phase from `xd` to `d`."""
    needs, foreign = value.get("d"), value.get("xd")
    if not isinstance(needs, list) or not isinstance(foreign, list):
        return
    own, others = list(needs), []
    for index, item in enumerate(foreign):
        name = f"{item.get('p')}-{item.get('n')}" if isinstance(item, dict) else ""
        is_own = PLAN.fullmatch(name) and name[:2] == known.phase and name != str(known.place.plan)
        if not is_own:
            others.append(item)
            continue
        own += [name] if name not in own else []
        message = f"plan {name} is of this phase; it is read as a member of `d`"
        faults.append(_fault(f"{at}/xd/{index}", Reason.UNTIDY_FORM, message, f"{name!r} in `d`"))
    if len(others) < len(foreign):
        value["d"], value["xd"] = own, others


def _read_value(form: Form, value: Any, known: _Known, faults: list[Fault], at: str) -> Any:
    if not isinstance(value, list):
        return _read_item(form, value, known, faults, at)
    empty = [item for item in value if _refers_to_nothing(form, item)]
    if empty:
        message = f"{', '.join(map(repr, empty))} names nothing"
        faults.append(_fault(at, Reason.EMPTY_VALUE, message, "names alone"))
    return [
        _read_item(form, item, known, faults, f"{at}/{index}")
        for index, item in enumerate(value)
        if not _refers_to_nothing(form, item)
    ]


def _read_item(form: Form, value: Any, known: _Known, faults: list[Fault], at: str) -> Any:
    read = FORMS[form](value, known)
    if read is None:
        return value
    if read.missing:
        message = f"waits for plan {', '.join(read.missing)}"
        faults.append(Fault(Reason.WAITS_FOR, at, message, "plans of this phase"))
        return value
    faults.append(_fault(at, Reason.UNTIDY_FORM, form.value, _shown(read.value)))
    return read.value


def _fault(at: str, reason: Reason, message: str, expected: str) -> Fault:
    return Fault(reason, at, message, expected, grade=Grade.SHOULD)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else text[:120] + "…"


def _object_as_text(value: Any, _: _Known) -> _Value | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _Value(str(value))
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return _Value(", ".join(value))
    if not isinstance(value, dict):
        return None
    parts = [_spelled(key, part) for key, part in value.items() if part is not None]
    return _Value(": ".join(parts)) if parts else None


def _spelled(key: str, part: Any) -> str:
    """Return a value of an object as part of a sentence."""
    if isinstance(part, list) and all(isinstance(item, str) for item in part):
        return ", ".join(part)
    if isinstance(part, bool | list | dict):
        return f"{key} {json.dumps(part, ensure_ascii=False)}"
    return str(part)


def _object_as_path(value: Any, _: _Known) -> _Value | None:
    if not isinstance(value, dict):
        return None
    named = [value[key] for key in ("path", "file", "f", "p", "name") if key in value]
    return _Value(named[0]) if named and isinstance(named[0], str) else None


def _share_as_percent(value: Any, _: _Known) -> _Value | None:
    if not isinstance(value, float) or not 0 < value < 100 or value.is_integer():
        return None
    return _Value(round(value * 100) if value < 1 else round(value))


def _text_as_artifact(value: Any, _: _Known) -> _Value | None:
    return _Value({"p": "", "pv": value, "c": ""}) if isinstance(value, str) else None


def _text_as_link(value: Any, _: _Known) -> _Value | None:
    return _Value({"fr": "", "to": "", "vi": value}) if isinstance(value, str) else None


def _text_as_dependency(value: Any, _: _Known | None) -> _Value | None:
    if not isinstance(value, str) or not PLAN.fullmatch(value):
        return None
    phase, _dash, plan = value.partition("-")
    return _Value({"p": phase, "n": plan, "a": "", "r": ""})


_NUMBERS = re.compile(
    r"(?:plan[- ]?)?(?:([0-9]{1,2})-)?([0-9]{1,2})(?:[.-]plan(?:\.jsonl)?)?", re.IGNORECASE
)


def _plan_id(value: Any, known: _Known) -> str | None:
    """Return the id of a plan of the artifact's own phase, or a whole id; None for other values."""
    if isinstance(value, dict):
        parts = [value.get(key) for key in ("p", "n") if key in value] or [value.get("plan")]
        is_named = len(value) == len(parts) and all(isinstance(part, str) for part in parts)
        return _plan_id("-".join(map(str, parts)), known) if is_named else None
    is_number = isinstance(value, int) and not isinstance(value, bool)
    match = _NUMBERS.fullmatch(value.strip() if isinstance(value, str) else f"{value}" * is_number)
    if not match:
        return None
    phase = match[1] or known.phase
    return f"{int(phase):02}-{int(match[2]):02}" if phase else None


def _read_short_plan(value: Any, known: _Known) -> _Value | None:
    if isinstance(value, str) and PLAN.fullmatch(value):
        return None
    match = NAME_FIRST.fullmatch(value) if isinstance(value, str) else None
    name = match[1] if match and PLAN.fullmatch(match[1]) else _plan_id(value, known)
    return _Value(name) if name else None


NAME_FIRST = re.compile(r"([0-9]{2}-[0-9]{2}|T[1-9][0-9]*)(?: ?\(.*\)| ?: .*| [-–—] .*)", re.DOTALL)
"""A name followed by a remark."""


_HASH = re.compile(
    r"(?:(?:[0-9]{2}-[0-9]{2}/)?T[0-9]+[ :=-]+)?(`?)([0-9a-fA-F]{7,64})\1(?:[ :,(].*)?", re.DOTALL
)


def _read_named_commit(value: Any, _: _Known) -> _Value | None:
    """Parse a hash with its task before it or its subject after it, or an object with one hash."""
    texts = list(value.values()) if isinstance(value, dict) else [value]
    hashes = [
        match[2] for text in texts if isinstance(text, str) and (match := _HASH.fullmatch(text))
    ]
    if len(hashes) != 1 or hashes[0].lower() == value:
        return None
    return _Value(hashes[0].lower())


def _refers_to_nothing(form: Form, item: Any) -> bool:
    """Return whether a member of a list of references refers to nothing.

    It is a word for nothing or, in place of a commit, any words without a hash.
    """
    if form is Form.NAMED_COMMIT and isinstance(item, str):
        return not _HASHES.search(item)
    return form in _NAMES and item in NAMES_NOTHING


_HASHES = re.compile(r"\b(?:[0-9a-fA-F]{4,}|(?=[0-9a-z]*[0-9])[0-9a-z]{6,})\b")
"""What is, or is meant to be, a commit hash."""
_RANGE = re.compile(r"([0-9]{2})-([0-9]{2}) ?(?:\.\.\.?|to|–|through) ?([0-9]{2})-([0-9]{2})")


def _expand_range(value: str) -> list[str]:
    """Return the ids of `NN-01 to NN-03`; an empty list for other texts."""
    match = _RANGE.fullmatch(value.strip())
    if not match or match[1] != match[3]:
        return []
    return [f"{match[1]}-{number:02}" for number in range(int(match[2]), int(match[4]) + 1)]


def _read_several_plans(value: Any, known: _Known) -> _Value | None:
    if not isinstance(value, str) or PLAN.fullmatch(value):
        return None
    named = _PHASE.fullmatch(value.strip())
    slug = known.place.phase.slug if known.place.phase else ""
    is_of_phase = named and named[1].zfill(2) == known.phase and not value[0].isdigit()
    if (
        value.strip().casefold() in (f"{known.phase}-*", "*", "all", f"{known.phase}-{slug}")
        or is_of_phase
    ):
        present = tuple(sorted(known.plans))
        return _Value(present, () if present else (f"{known.phase}-*",))
    whole = _plan_id(value.strip(), known)
    parts = [whole] if whole else re.split(r"(?:[ ,;+&]|\band\b|\bplans?\b|/(?=[0-9]))+", value)
    names = _expand_range(value) or [_plan_id(part, known) or "" for part in parts if part]
    if not names or not all(names):
        return None
    plans = tuple(dict.fromkeys(names))
    if len(plans) == 1:
        return _Value(plans[0])
    return _Value(plans, tuple(name for name in plans if name not in known.plans))


_NAMES = frozenset({Form.SHORT_PLAN, Form.NAMED_COMMIT, Form.LONG_TASK})
"""Forms of references; a list of them may have members that refer to nothing."""
NAMES_NOTHING = ("", "none", "None", "N/A", "n/a", "-")
"""Words for an absent name."""
_PHASE = re.compile(r"(?:phase[- ]?)?0*([0-9]{1,2})(?:-(.+))?", re.IGNORECASE)


def _read_phase_number(value: Any, _: _Known) -> _Value | None:
    match = _PHASE.fullmatch(value) if isinstance(value, str) else None
    number = f"{int(match[1]):02}" if match else value
    return _Value(number) if number != value else None


def _read_own_phase(value: Any, known: _Known) -> _Value | None:
    plan = known.place.plan
    if plan is None or value == plan.phase or not isinstance(value, str):
        return None
    match = _PHASE.fullmatch(value)
    if not match or int(match[1]) != int(plan.phase):
        return None
    same = ("", plan.number, *((known.place.phase.slug,) if known.place.phase else ()))
    return _Value(plan.phase) if (match[2] or "") in same else None


def _read_own_plan(value: Any, known: _Known) -> _Value | None:
    plan = known.place.plan
    if plan is None or value == plan.number or not isinstance(value, str):
        return None
    # Where the title replaces the number, the file name has the number.
    is_title = re.search(r"[A-Za-z]{3}", value) and not re.search(r"plan|[0-9]", value.casefold())
    return _Value(plan.number) if is_title or _plan_id(value, known) == str(plan) else None


def _read_long_task(value: Any, known: _Known) -> _Value | None:
    if not isinstance(value, str) or known.place.plan is None:
        return None
    if match := NAME_FIRST.fullmatch(value):
        return _Value(match[1])
    plan, slash, task = value.rpartition("/")
    return _Value(task) if slash and plan == str(known.place.plan) else None


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"(?P<day>[0-9]{4}[-/.]?[0-9]{1,2}[-/.]?[0-9]{1,2})"
    r"[T ](?P<minute>[0-9]{2}:?[0-9]{2})(?P<second>:?[0-9]{2}(?:\.[0-9]+)?)? ?"
    r"(?P<zone>Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})?"
)
_ASIDE = re.compile(r"(?<!\s)\s*+\([^()]*+\)$")
"""A remark after a date or a time."""


_SPELLED_DAYS = ("%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%Y-%m-%d", "%B %d, %Y", "%b %d, %Y", "%B %d %Y",
                 "%b %d %Y", "%d %B %Y", "%d %b %Y", "%a %b %d %Y", "%A, %B %d, %Y")  # fmt: skip
"""Spellings in which year, month and day cannot be mistaken for one another."""


def _moment_as_day(value: Any, _: _Known) -> _Value | None:
    if not isinstance(value, str) or _DAY.fullmatch(value):
        return None
    text = _ASIDE.sub("", value)
    match = _MOMENT.fullmatch(text)
    day = _parse_day(match["day"] if match else re.sub(r"(?<=[0-9])(st|nd|rd|th)\b", "", text))
    return _Value(day) if day else None


def _parse_day(text: str) -> str | None:
    for spelling in _SPELLED_DAYS:
        with suppress(ValueError):
            return datetime.strptime(text, spelling).date().isoformat()
    return None


def _day_as_moment(value: Any, known: _Known) -> _Value | None:
    if read := _read_whole_moment(value, known):
        return read
    day = value if isinstance(value, str) and _DAY.fullmatch(value) else None
    if day is None and (read := _moment_as_day(value, known)) and not _MOMENT.fullmatch(value):
        day = read.value
    return _Value(f"{day}T00:00:00Z") if day else None


def moment_of(value: Any) -> str | None:
    """Return the moment that a number means, in seconds or milliseconds since 1970; None for other
    values, and for a moment of another century.
    """
    if not isinstance(value, int | float):
        return None
    seconds = value / 1000 if value > _LATEST_S else value
    if not _EARLIEST_S < seconds < _LATEST_S:
        return None
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_EARLIEST_S, _LATEST_S = 946_684_800, 4_102_444_800


def _read_whole_moment(value: Any, _: _Known) -> _Value | None:
    match = _MOMENT.fullmatch(_ASIDE.sub("", value)) if isinstance(value, str) else None
    day = _parse_day(match["day"]) if match else None
    if not match or not day:
        return None
    minute, second = match["minute"].replace(":", ""), (match["second"] or "00").lstrip(":")
    zone = {"UTC": "Z", "GMT": "Z"}.get(match["zone"] or "Z", match["zone"] or "Z")
    if zone != "Z" and ":" not in zone:
        zone = f"{zone[:3]}:{zone[3:]}"
    moment = f"{day}T{minute[:2]}:{minute[2:]}:{second}{zone}"
    return _Value(moment) if moment != value else None


FORMS: Mapping[Form, Callable[[Any, _Known], _Value | None]] = {
    Form.OBJECT_AS_TEXT: _object_as_text,
    Form.OBJECT_AS_PATH: _object_as_path,
    Form.SHARE_AS_PERCENT: _share_as_percent,
    Form.TEXT_AS_ARTIFACT: _text_as_artifact,
    Form.TEXT_AS_LINK: _text_as_link,
    Form.TEXT_AS_DEPENDENCY: _text_as_dependency,
    Form.SHORT_PLAN: _read_short_plan,
    Form.PHASE: _read_phase_number,
    Form.NAMED_COMMIT: _read_named_commit,
    Form.SEVERAL_PLANS: _read_several_plans,
    Form.OWN_PHASE: _read_own_phase,
    Form.OWN_PLAN: _read_own_plan,
    Form.LONG_TASK: _read_long_task,
    Form.MOMENT_AS_DAY: _moment_as_day,
    Form.DAY_AS_MOMENT: _day_as_moment,
}
"""Form → its parser; returns the documented value, or None if the value is not of that form."""
