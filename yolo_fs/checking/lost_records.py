"""Finds the records of the branch that a new version of their file lacks, and their authors, and
restores them. See docs/operations.md.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from yolo_fs.artifacts.classify import ENVELOPE, PLANNING_ROOT, classify
from yolo_fs.artifacts.records import (
    LostRecord,
    keeps_records,
    key_of,
    lost_records,
    name_of,
    superseded_in,
)
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.authority.writers import producers_of
from yolo_fs.core.ids import SHORT
from yolo_fs.core.reasons import Finding, Reason, YoloError, shortened
from yolo_fs.git.failures import GitError
from yolo_fs.git.history import LoggedCommit, log
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.departments import name_in
from yolo_fs.system.readers import READERS
from yolo_fs.system.text_checks import Limits

_DECISIONS = "decisions.jsonl"
_MOST_NAMED = 20
_VERSIONS_LOOKED_AT = 200


def lost_from(
    repository: Repository, place: ArtifactPath, data: bytes, blob: str | None, tip: str | None
) -> tuple[Finding, ...]:
    """Return a finding for each record that a new version lacks and that may not be removed, or
    that a handoff was sent already with another content.

    `data`: the new version; `blob`: the one that the branch has, None when there is none.
    """
    if place.artifact is ENVELOPE:
        return _check_sent(repository, place, data, blob)
    lost = [*_lost(repository, place, data, blob, tip)]
    named = lost[:_MOST_NAMED]
    added = _find_adding_commits(repository, place, named, tip) if named else {}
    findings = [_finding(place, record, added.get(record.line)) for record in named]
    if more := len(lost) - len(findings):
        message, hint = f"and {more} more", f"'git diff HEAD -- {place.path}' shows all"
        findings.append(Finding(Reason.RECORDS_LOST, place.path, message=message, hint=hint))
    return tuple(findings)


def _check_sent(
    repository: Repository, place: ArtifactPath, data: bytes, blob: str | None
) -> tuple[Finding, ...]:
    readings = (_read_blob(repository, blob) if blob else data, data)
    before, now = (READERS[place.artifact.format](each, place.path, Limits()) for each in readings)
    if [each.value for each in before.records] == [each.value for each in now.records]:
        return ()
    message, expected = "it was sent with another content", "the handoff as it was sent"
    was = shlex.quote(f"HEAD:{place.path}")
    hint = (
        f"'git show {was}' prints it. 'yolo-fs envelope new' writes a new handoff under another "
        "name."
    )
    return (Finding(Reason.STATE_CONFLICT, place.path, 1, "", message, expected, hint),)


def dropped_by_merges(repository: Repository, tip: str) -> Iterator[tuple[str, Finding]]:
    """Yield each merge that dropped records of a side which `tip` still lacks, with a finding for
    each file and side.

    A side may have removed what both had before. What this clone does not have tells of nothing.
    """
    for merge in _list_merges(repository, tip):
        with suppress(YoloError):
            yield from [(merge, each) for each in _find_dropped(repository, merge, tip)]


def _list_merges(repository: Repository, tip: str) -> list[str]:
    # without --full-history git passes over a merge that took one side whole
    words = ("rev-list", "--merges", "--full-history", "--end-of-options", tip, "--")
    try:
        listed = repository.git.text(*words, PLANNING_ROOT)
    except GitError:  # a partial clone has not the trees to tell which of them changed the folder
        listed = repository.git.text(*words)
    return listed.split()


def _find_dropped(repository: Repository, merge: str, tip: str) -> Iterator[Finding]:
    for side in repository.parents(merge):
        for path in sorted(repository.files_between(side, merge, PLANNING_ROOT)):
            place = classify(path)
            if place is None or not keeps_records(place.artifact):
                continue
            before = _values_at(repository, side, place)
            lost = _lost_lines(place, before, _values_at(repository, merge, place))
            lost &= _lost_lines(place, before, _values_wherever(repository, tip, place))
            for other in {*repository.parents(merge)} - {side} if lost else ():
                removed = _find_removed_keys(repository, place, side, other)
                lost -= {at for at in lost if key_of(place.artifact, before[at - 1]) in removed}
            let_go = superseded_in(_decisions(repository, place, tip), place.name)
            names = [_name_of_line(place, before, at) for at in sorted(lost)]
            if kept := [name for name in names if name not in let_go]:
                yield _finding_on_merge(place, kept, min(lost), side)


def _lost_lines(
    place: ArtifactPath, before: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]]
) -> set[int]:
    return {record.line for record in lost_records(place.artifact, before, now)}


def _name_of_line(place: ArtifactPath, values: Sequence[dict[str, Any]], line: int) -> str:
    name = "" if place.artifact.append_only else name_of(place.artifact, values[line - 1])
    return name or f"line {line}"


def _find_removed_keys(
    repository: Repository, place: ArtifactPath, side: str, other: str
) -> set[str]:
    """Return the keys of the records that the other side of a merge removed, of those that both
    sides had.
    """
    answer = repository.git.run("merge-base", "--all", side, other, ok=(0, 1))
    now = _values_wherever(repository, other, place)
    return {
        key_of(place.artifact, before[line - 1])
        for base in answer.out.decode().split()
        for before in (_values_wherever(repository, base, place),)
        for line in _lost_lines(place, before, now)
    }


def _values_at(repository: Repository, commit: str, place: ArtifactPath) -> list[dict[str, Any]]:
    """Return the records that a commit has at a path; none where it has no file.

    Raises:
        YoloError: OBJECT_MISSING.
    """
    blob = repository.blob_at(commit, place.path)
    if blob is None:
        return []
    git_object = repository.objects.read(blob, Limits().max_file_bytes)
    if git_object is None:
        raise repository.objects.unread(f"blob {blob}", commit)
    return _values(place, git_object.body)


def _values_wherever(
    repository: Repository, commit: str, place: ArtifactPath
) -> list[dict[str, Any]]:
    """Return the records that a commit has in a file; in all of its name where there is none at
    the path, as the folder of a phase may be renamed.
    """
    paths = repository.files_at(commit, PLANNING_ROOT)
    named = (path for path in paths if path.endswith(f"/{place.name}"))
    places = [place] if place.path in paths else map(classify, sorted(named))
    return [value for each in places if each for value in _values_at(repository, commit, each)]


def _finding_on_merge(place: ArtifactPath, names: Sequence[str], line: int, side: str) -> Finding:
    was = shlex.quote(f"{side[:SHORT]}:{place.path}")
    shown = f"'git show {was}'"
    message = f"the merge dropped {shortened(names, 3, shown_by=shown)} of {side[:SHORT]}"
    expected = "every record of both sides"
    hint = f"{shown} prints the file: add to it what is missing."
    return Finding(Reason.RECORDS_LOST, place.path, line, "", message, expected, hint)


def restored(repository: Repository, place: ArtifactPath, data: bytes) -> bytes:
    """Return a version with its lost records of the branch restored.

    Each is unchanged and in its old place, before the records that are new.
    """
    tip = repository.head().tip
    blob = repository.blob_at(tip, place.path)
    lost = {record.line for record in _lost(repository, place, data, blob, tip)}
    if not lost or blob is None:
        return data
    body = _read_blob(repository, blob)
    before, now = body.splitlines(), data.splitlines()  # a text has more ends of lines than JSONL
    keys = [key_of(place.artifact, record) for record in _values(place, data)]
    if len(keys) != len(now):  # a line of it is none: its writer mends that first
        return data
    known = 0
    for number, value in enumerate(_values(place, body), 1):
        key = key_of(place.artifact, value)
        if number in lost:
            now.insert(known, before[number - 1])
            keys.insert(known, key)
            known += 1
        elif key in keys[known:]:
            known = keys.index(key, known) + 1
    return b"".join(line + b"\n" for line in now)


def _lost(
    repository: Repository, place: ArtifactPath, data: bytes, blob: str | None, tip: str | None
) -> Iterator[LostRecord]:
    if blob is None or not keeps_records(place.artifact):
        return
    before, now = (_values(place, each) for each in (_read_blob(repository, blob), data))
    lost = [*lost_records(place.artifact, before, now)]
    if not lost:
        return
    let_go = superseded_in(_decisions(repository, place, tip), place.name)
    yield from (record for record in lost if record.name not in let_go)


def _decisions(
    repository: Repository, place: ArtifactPath, tip: str | None
) -> Iterator[dict[str, Any]]:
    """Yield the committed decisions of its phase; of all phases if it belongs to none."""
    folder = place.folder if place.phase else PLANNING_ROOT
    for path, blob in repository.files_at(tip, folder).items() if tip else ():
        if path.endswith(f"/{_DECISIONS}"):
            reading = READERS[place.artifact.format](_read_blob(repository, blob), path, Limits())
            yield from (record.value for record in reading.records)


def _finding(place: ArtifactPath, record: LostRecord, added: LoggedCommit | None) -> Finding:
    kind = place.artifact.kind
    writers = " or ".join(sorted(name_in(role, place.department) for role in producers_of(kind)))
    whose = f" of {record.speaker or writers}" if record.speaker or writers else ""
    where = f", committed in {added.oid[:8]} ({added.subject})" if added else ""
    hint = f"'yolo-fs fix --write {place.path}' brings it back beside what is new."
    if not place.artifact.append_only:
        hint += (
            f" If it is meant to go: yolo-fs decide supersede {shlex.quote(place.path)} "
            f"{shlex.quote(record.name)} --as AGENT --reason …"
        )
    message = f"{record.name}{whose} is missing{where}"
    expected = "every record that the branch has, with what is new"
    return Finding(Reason.RECORDS_LOST, place.path, record.line, "", message, expected, hint)


def _find_adding_commits(
    repository: Repository, place: ArtifactPath, lost: Sequence[LostRecord], tip: str | None
) -> dict[int, LoggedCommit]:
    """Return line → the commit that added that record, within a limited part of history."""
    commits: dict[int, LoggedCommit] = {}
    wanted: dict[int, dict[str, Any]] | None = None
    path, most = place.path, _VERSIONS_LOOKED_AT
    for commit in log(repository, tip, limit=most, path=path, with_changes=False) if tip else ():
        blob = repository.blob_at(commit.oid, path)
        values = _values(place, _read_blob(repository, blob)) if blob else []
        if wanted is None:
            wanted = {
                record.line: values[record.line - 1]
                for record in lost
                if record.line <= len(values)
            }
        wanted = {
            line: value
            for line, value in wanted.items()
            if not any(lost_records(place.artifact, [value], values))
        }
        if not wanted:
            break
        commits |= dict.fromkeys(wanted, commit)
    return commits


def _values(place: ArtifactPath, data: bytes) -> list[dict[str, Any]]:
    """Return the records in normal form: a record that is only reformatted is not lost."""
    from yolo_fs.artifacts.forms import normalise  # shapes, where a record is really missing

    raw = READERS[place.artifact.format](data, place.path, Limits()).records
    read = normalise(place, raw).records
    return [
        record.value for record in (read if len(read) == len(raw) else raw)
    ]  # one for each line


def _read_blob(repository: Repository, blob: str) -> bytes:
    git_object = repository.objects.read(blob, Limits().max_file_bytes)
    return git_object.body if git_object else b""
