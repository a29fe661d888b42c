"""What `init` does: a plan of values, then its execution.

It never overwrites, and a second run does nothing.

See docs/dev/faults.md#f33 and #f62.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import product

from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.artifacts.table import ARTIFACTS, HIDDEN, IGNORED_STATES, RUNTIME, Home
from yolo_fs.core.reasons import Exit, Finding, Level, Reason, YoloError
from yolo_fs.git.obstacles import IgnoreRule, IgnoreRules, PathRules
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.departments import (
    BACKEND_ONLY,
    DEFAULT_DEPARTMENT,
    PARALLEL,
    WORKING_NAMES,
    Dept,
)
from yolo_fs.system.files import Content, Stamp, read, stamp_of
from yolo_fs.system.packaged import packaged
from yolo_fs.system.readers import read_object
from yolo_fs.system.store import RefusedError, open_regular, place_file, sync_file
from yolo_fs.workspace.settings import CONFIG, user_config_path


@dataclass(frozen=True, slots=True)
class Create:
    """A file to create."""

    path: str
    """POSIX path relative to the repository."""
    data: bytes

    did = "created"


@dataclass(frozen=True, slots=True)
class AddLines:
    """Lines that are missing in one of our own files."""

    path: str
    lines: tuple[str, ...]
    after: bytes
    """Last byte of the file as it was read, so that the first line starts a line of its own."""

    did = "extended"


@dataclass(frozen=True, slots=True)
class Keep:
    """Something that exists and stays as it is."""

    path: str

    did = "kept"


Deed = Create | AddLines | Keep

RULES: Mapping[str, tuple[str, ...]] = {
    ".gitignore": (
        "# Coordination of the moment, never committed; kept by `yolo-fs init`.",
        # config.json is no artifact, yet people do commit it.
        *(pattern for pattern in RUNTIME if pattern != "config.json"),
        *IGNORED_STATES,
        ".*.yolo-tmp.*",
    ),
    ".gitattributes": (
        "# The same bytes on every machine; kept by `yolo-fs init`.",
        *(f"*.{suffix} text eol=lf" for suffix in ("json", "jsonl", "toon", "md")),
    ),
}
"""Lines of our own files in the planning tree.

The user's own `.gitignore` and `.gitattributes` are never touched.
"""

_KEEPER = ".gitkeep"


def plan(root: str, departments: Sequence[Dept] = (), team: str = "") -> tuple[Deed, ...]:
    """Return what prepares the work tree `root`; changes nothing.

    `team`: a size of the company by its name, empty for the configuration's default.

    Raises:
        YoloError: NOT_REGULAR, when a link or a file stands where a folder of ours must be.
    """
    files = [
        _file(root, name, _chosen(name, data, departments, team))
        for name, data in template().items()
    ]
    return (*files, *(_lines(root, name, lines) for name, lines in RULES.items()))


def _file(root: str, name: str, data: bytes) -> Deed:
    path = f"{PLANNING_ROOT}/{name}"
    if _is_there(root, path) or (os.path.basename(name) == _KEEPER and _holds_anything(root, path)):
        return Keep(path)
    return Create(path, data)


def _lines(root: str, name: str, lines: tuple[str, ...]) -> Deed:
    path = f"{PLANNING_ROOT}/{name}"
    if not _is_there(root, path):
        return Create(path, _text(lines))
    content = read(root, path, 1 << 20)
    if not isinstance(content, Content):
        raise _refused(content)
    present = {line.strip() for line in content.data.splitlines()}
    missing = tuple(
        line for line in lines if line.encode() not in present and not line.startswith("#")
    )
    return AddLines(path, missing, content.data[-1:]) if missing else Keep(path)


def _is_there(root: str, path: str) -> bool:
    outcome = stamp_of(root, path)
    if isinstance(outcome, Stamp):
        return True
    if outcome.reason is Reason.FILE_MISSING:
        return False
    raise _refused(outcome)


def _refused(finding: Finding) -> YoloError:
    return YoloError(
        finding.reason,
        f"{finding.path}: {finding.message}",
        hint=f"Move it away: {PLANNING_ROOT}/ must be a real folder with folders and files.",
        exit_code=Exit.NOT_HERE,
    )


def _holds_anything(root: str, keeper: str) -> bool:
    try:
        return bool(os.listdir(os.path.join(root, os.path.dirname(keeper))))
    except OSError:
        return False


def _text(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def template() -> dict[str, bytes]:
    """Return the files that a new planning tree gets: path below it → content."""
    folder = packaged("_template", ".yolo-planning-template")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def workflow_of(departments: Sequence[Dept]) -> str:
    """Return how departments are dispatched: in parallel if there are several."""
    return PARALLEL if set(departments) - {DEFAULT_DEPARTMENT} else BACKEND_ONLY


def _chosen(name: str, data: bytes, departments: Sequence[Dept], team: str) -> bytes:
    """Return the file; if it is the configuration, with departments and team filled in.

    Backend always takes part.
    """
    if name != os.path.basename(CONFIG) or not (departments or team):
        return data
    config = json.loads(data)
    if departments:
        config["departments"] = {
            name: name in {DEFAULT_DEPARTMENT, *departments} for name in WORKING_NAMES
        }
        config["department_workflow"] = workflow_of(departments)
    if team:
        config["company"] = {**config.get("company", {}), "team": team}
    return json.dumps(config, indent=2).encode() + b"\n"


def uncommitted(repository: Repository, deeds: Sequence[Deed]) -> dict[str, bytes]:
    """Return the files of a plan that HEAD lacks: those to create, and those that are there as
    `init` writes them.
    """
    tip = repository.head().tip
    files = {}
    for deed in deeds:
        data = deed.data if isinstance(deed, Create) else _as_written(repository.root, deed.path)
        if data is not None and repository.blob_at(tip, deed.path) is None:
            files[deed.path] = data
    return files


BEGINNING = "chore(repo): add yolo"


def command_to_commit(paths: Sequence[str]) -> str:
    """Return the command with which the user commits files of the planning tree themselves."""
    named = " ".join(map(shlex.quote, paths))
    # What is staged already is no part of this commit, so the paths are given twice.
    return f'git add {named} && git commit -m "{BEGINNING}" {named}'


def find_uncommitted(repository: Repository) -> Finding | None:
    """Return what names the files of `init` that lie in the work tree and that nobody commits.

    The daemon commits those that are artifacts, and what git ignores is kept out on purpose; other
    rules that hold files are told by themselves.
    """
    root, tip = repository.root, repository.head().tip
    paths = (f"{PLANNING_ROOT}/{name}" for name in (*template(), *RULES))
    missing = [path for path in paths if repository.blob_at(tip, path) is None]
    missing = [
        path
        for path in missing
        if classify(path) is None and isinstance(stamp_of(root, path), Stamp)
    ]
    if not missing:
        return None
    with closing(PathRules(repository)) as rules:
        missing = [path for path in missing if not rules.reason_to_hold(path, in_head=False)]
    if not missing:
        return None
    more = f", like {len(missing) - 1} more" if len(missing) > 1 else ""
    is_ours = any(_as_written(root, path) is not None for path in missing)
    return Finding(
        Reason.NOT_COMMITTED,
        missing[0],
        message=f"the branch lacks it{more}: init made it, and you have to commit it",
        level=Level.WARNING,
        command="yolo-fs init --commit" if is_ours else command_to_commit(missing),
    )


def left_to_the_user(repository: Repository, deeds: Sequence[Deed]) -> Iterator[str]:
    """Yield the files of a plan that are not committed, and not as `init` writes them."""
    tip = repository.head().tip
    for deed in deeds:
        is_new = isinstance(deed, Keep) and repository.blob_at(tip, deed.path) is None
        is_changed = is_new and _is_changed(repository.root, deed.path)
        if is_changed or isinstance(deed, AddLines):
            yield deed.path


def _is_changed(root: str, path: str) -> bool:
    return os.path.lexists(os.path.join(root, path)) and _as_written(root, path) is None


def _as_written(root: str, path: str) -> bytes | None:
    """Return the content of a file of ours that is as `init` writes it; else None."""
    content = read(root, path, 1 << 20)
    is_ours = isinstance(content, Content) and content.data in _versions(path, content.data)
    return content.data if isinstance(content, Content) and is_ours else None


def _versions(path: str, data: bytes) -> Iterator[bytes]:
    """Yield what `init` writes there; the configuration with the choices that `data` says."""
    name = path.removeprefix(f"{PLANNING_ROOT}/")
    if name in RULES:
        yield _text(RULES[name])
        return
    original = template()[name]
    yield original
    records = read_object(data, path).records if path == CONFIG else ()
    if not records:
        return
    departments, company = (records[0].value.get(key) for key in ("departments", "company"))
    names = departments if isinstance(departments, dict) else {}
    chosen = [Dept(each) for each in WORKING_NAMES if names.get(each) is True]
    team = company.get("team") if isinstance(company, dict) else None
    for depts, size in product(((), chosen), ("", team)):
        yield _chosen(name, original, depts, str(size or ""))


def carry_out(root: str, deeds: Sequence[Deed]) -> tuple[Deed, ...]:
    """Carry out the plan; return what was done. A file that appeared meanwhile is kept."""
    return tuple(_done(root, deed) for deed in deeds)


def _done(root: str, deed: Deed) -> Deed:
    if isinstance(deed, Keep):
        return deed
    try:
        if isinstance(deed, AddLines):
            _append(root, deed)
            return deed
        return deed if _create_file(root, deed.path, deed.data) else Keep(deed.path)
    except RefusedError as refusal:
        raise _refused(Finding(refusal.reason, deed.path, message=refusal.detail)) from None
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise YoloError(
            Reason.NO_SPACE if full else Reason.STORAGE_FAILED,
            f"{deed.path}: {error.strerror or error}",
            hint="Free space or check permissions, then run 'yolo-fs init' again: it goes on "
            "where it stopped.",
            exit_code=Exit.TRY_AGAIN,
        ) from error


def _create_file(root: str, name: str, data: bytes) -> bool:
    """Create a whole file, or none; False when it is there. Half a file would be kept for ever."""
    reason = place_file(root, name, data, None)
    if reason is Reason.BEING_WRITTEN:
        return False
    if reason:
        raise RefusedError(reason, "")
    sync_file(root, name)
    return True


def _append(root: str, deed: AddLines) -> None:
    start = b"" if deed.after in (b"", b"\n") else b"\n"
    path, flags = os.path.join(root, deed.path), os.O_WRONLY | os.O_APPEND
    with os.fdopen(open_regular(path, flags, root=root), "wb") as file:
        file.write(start + _text(deed.lines))


def tree_of_another(repository: Repository) -> Finding | None:
    """Return what says that the planning tree lies in another repository, or None.

    git is asked only where there are submodules, because `status` asks this, too.
    """
    has_submodules = os.path.lexists(os.path.join(repository.root, ".gitmodules"))
    if has_submodules and repository.submodule_above(
        repository.head().tip, f"{PLANNING_ROOT}/{_KEEPER}"
    ):
        hint = (
            f"It is a submodule. 'git rm --cached {PLANNING_ROOT}' and a commit make it a folder."
        )
        look = ""
    elif os.path.lexists(os.path.join(repository.root, PLANNING_ROOT, ".git")):
        hint = "Move its .git away: with it, the folder does not belong to this repository."
        look = f"git -C {PLANNING_ROOT} rev-parse --absolute-git-dir"
    else:
        return None
    return Finding(
        Reason.FOREIGN_REPOSITORY,
        PLANNING_ROOT,
        message="artifacts will be held",
        expected="a planning tree that is part of this repository",
        hint=hint,
        command=look,
    )


def obstacles(
    repository: Repository, *, commit_ignored: bool, files: Sequence[str] = ()
) -> tuple[Finding, ...]:
    """Return the user's own git rules that would hold artifacts, each with a way out.

    `files`: our own, which are to be committed as well.
    """
    ignored = () if commit_ignored else tuple(_check_ignore_rules(repository, files))
    return (*ignored, *_check_git_attributes(repository))


def example_paths() -> tuple[str, ...]:
    """Return one path of every kind of artifact."""
    gaps = {"dept": "", "plan": "01-01", "NN": "01", "department": DEFAULT_DEPARTMENT}
    folders = {Home.PHASE: "phases/01-example/"}
    return tuple(
        f"{PLANNING_ROOT}/{folders.get(artifact.home, '')}{artifact.file.format(**gaps)}"
        for artifact in ARTIFACTS
    )


def _check_ignore_rules(repository: Repository, files: Sequence[str]) -> Iterator[Finding]:
    """Yield each ignore rule that matches an artifact, or one of the files, once."""
    hit: dict[IgnoreRule, list[str]] = {}
    for path, rule in _match_ignores(repository, (*example_paths(), *files)):
        hit.setdefault(rule, []).append(path)
    for rule, paths in hit.items():
        count = len(paths) - len(set(paths) & set(files))
        kinds = f"{count} kinds of artifact, such as {paths[0]}: all will be held"
        yield Finding(
            Reason.GITIGNORED,
            rule.source,
            rule.line,
            message=f"{rule.pattern!r} ignores {kinds if count else paths[0]}",
            hint=f"Remove the rule, or put into {user_config_path()}: "
            '{"policy": {"commit_ignored": true}}.',
            level=Level.WARNING,
            command=f"git check-ignore -v --no-index {shlex.quote(paths[0])}",
        )


_OF_OURS = ("info/exclude", f"{PLANNING_ROOT}/.gitignore")
"""Files in which our own rules only hide state files."""


def _match_ignores(
    repository: Repository, paths: Sequence[str]
) -> Iterator[tuple[str, IgnoreRule]]:
    with closing(IgnoreRules(repository, of_tracked=True)) as rules:
        for path, rule in zip(paths, rules.find(paths), strict=True):
            if rule and not (
                rule.pattern in (*HIDDEN, *IGNORED_STATES) and rule.source.endswith(_OF_OURS)
            ):
                yield path, rule


def _check_git_attributes(repository: Repository) -> Iterator[Finding]:
    with closing(PathRules(repository, commit_ignored=True)) as rules:
        hit = [
            path
            for path in example_paths()
            if rules.reason_to_hold(path, in_head=False) is Reason.ATTR_FILTER
        ]
    if hit:
        yield Finding(
            Reason.ATTR_FILTER,
            hit[0],
            message=f"a git attribute would rewrite {len(hit)} kinds of artifact: all will be held",
            hint=f"Unset filter, ident and working-tree-encoding below {PLANNING_ROOT}/ in your "
            ".gitattributes.",
            level=Level.WARNING,
        )
