"""Every reason that yolo_fs gives, and the two forms that carry a reason.

`Reason` is a closed list: code and sentence, shown to agents and never renamed. A `Finding`
describes a fault of an agent's file and is a value; a `YoloError` describes a fault of the
environment and is raised.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple


class Reason(StrEnum):
    """A reason code and the sentence that explains it."""

    sentence: str

    def __new__(cls, code: str, sentence: str) -> Reason:
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member

    @property
    def with_sentence(self) -> str:
        """The code and the sentence, such as `not_running: no daemon watches this work tree`."""
        return f"{self.value}: {self.sentence}"

    @classmethod
    def of(cls, code: str) -> Reason:
        """Return the reason with this code.

        Raises:
            ValueError: there is none.
        """
        if (reason := cls.known(code)) is None:
            raise ValueError(f"no reason is called {code!r}")
        return reason

    @classmethod
    def known(cls, code: str) -> Reason | None:
        """Return the reason with this code, or None."""
        return next((reason for reason in cls if reason.value == code), None)

    # Document 004: why a handoff was read the way it was.
    FILE_MISSING = "file_missing", "the expected path does not exist"
    JSON_PARSE_ERROR = "json_parse_error", "the text is not valid JSON"
    SCHEMA_INVALID = "schema_invalid", "valid JSON, but not the shape that the protocol requires"
    TEXT_FALLBACK_OK = "text_fallback_ok", "the ---HANDOFF--- text block was parsed instead"
    TEXT_FALLBACK_FAIL = "text_fallback_fail", "the ---HANDOFF--- text block failed as well"

    # The file itself.
    NOT_REGULAR = (
        "not_regular",
        "a link, pipe, device, socket or folder is in the place of a file",
    )
    HARD_LINKED = "hard_linked", "the file has a second name elsewhere"
    FOREIGN_OWNER = "foreign_owner", "the file belongs to another user"
    UNREADABLE = "unreadable", "the file cannot be read"
    EMPTY_FILE = "empty_file", "the file has no content"
    FILE_TOO_LARGE = "file_too_large", "the file is larger than the limit"
    LINE_TOO_LONG = "line_too_long", "a line is longer than the limit"

    # Its bytes.
    NOT_UTF8 = "not_utf8", "the bytes are not UTF-8"
    BYTE_ORDER_MARK = "byte_order_mark", "the file begins with a byte order mark"
    NUL_BYTE = "nul_byte", "the file contains a NUL byte"
    CARRIAGE_RETURN = "carriage_return", "a line has a Windows line ending (CR LF), or a bare CR"
    CONTROL_CHARACTER = (
        "control_character",
        "the text contains a control or bidirectional character",
    )
    CONFLICT_MARKER = "conflict_marker", "the file contains a git conflict marker"
    UNTERMINATED = (
        "unterminated",
        "the last line has no newline: it is cut off, or still being written",
    )

    # Its JSON.
    FENCED_JSON = "fenced_json", "the JSON is wrapped in a Markdown fence"
    BLANK_LINE = "blank_line", "a line is blank"
    NESTING_TOO_DEEP = "nesting_too_deep", "the JSON is nested deeper than the limit"
    NUMBER_TOO_LARGE = "number_too_large", "a number has more digits than the limit"
    NOT_FINITE = "not_finite", "NaN, Infinity or a number that overflows is not JSON"
    DUPLICATE_KEY = "duplicate_key", "an object names the same key twice"
    LONE_SURROGATE = "lone_surrogate", "a string holds half of a surrogate pair"
    NOT_AN_OBJECT = "not_an_object", "the line is JSON, but not an object"

    # Its shape.
    MISSING_KEY = "missing_key", "a required key is absent"
    WRONG_TYPE = "wrong_type", "a value has the wrong type"
    UNKNOWN_VALUE = "unknown_value", "a value is not among those that the protocol lists"
    BAD_FORMAT = "bad_format", "a value does not have the prescribed form"
    OUT_OF_RANGE = "out_of_range", "a number is outside its range"
    EMPTY_VALUE = "empty_value", "a value that must not be empty is empty"
    TOO_LONG = "too_long", "a value is longer than the protocol allows"
    UNKNOWN_KEY = "unknown_key", "the protocol does not know this key"
    LEGACY_KEY = "legacy_key", "an old name of a key"
    UNTIDY_FORM = "untidy_form", "another form than the documented one, with the same meaning"
    RIVAL_SHAPE = "rival_shape", "an older, rival shape of this artifact"
    UNKNOWN_TYPE = "unknown_type", "no message has this type"
    WRONG_LINE_COUNT = "wrong_line_count", "the artifact has too many or too few lines"
    TOTALS_DISAGREE = "totals_disagree", "counts that must agree do not"
    STATE_CONFLICT = "state_conflict", "two values exclude each other"
    WRONG_LEVEL = (
        "wrong_level",
        "an escalation or its resolution skips a level, or goes the wrong way",
    )

    # Its references.
    NAME_MISMATCH = "name_mismatch", "the content names another artifact than the file name"
    PHASE_MISMATCH = "phase_mismatch", "the content names another phase than its directory"
    BRANCH_MISMATCH = "branch_mismatch", "the content names the wrong branch"
    DUPLICATE_ID = "duplicate_id", "the same id is used more than once"
    UNKNOWN_REFERENCE = "unknown_reference", "a reference has no target"
    SELF_REFERENCE = "self_reference", "something depends on itself"
    DEPENDENCY_CYCLE = "dependency_cycle", "the dependencies form a cycle"
    WAVE_ORDER = "wave_order", "a plan depends on a plan of the same or a later wave"
    WAITS_FOR = "waits_for", "it refers to an artifact that does not exist yet"
    UNKNOWN_COMMIT = "unknown_commit", "this repository has no commit with this hash"
    PATH_ESCAPES = ("path_escapes", "a path is absolute, leaves the repository or is in .git")
    SECTION_MISSING = "section_missing", "a section that the protocol names is absent"
    TOON_INVALID = "toon_invalid", "the text is not valid TOON"

    # Its front matter (document 001).
    FRONT_MATTER_MISSING = "front_matter_missing", "the file does not begin with front matter"
    FRONT_MATTER_UNCLOSED = "front_matter_unclosed", "the front matter is never closed"
    FRONT_MATTER_SHAPE = "front_matter_shape", "the front matter is not one flat `handoff:` mapping"
    YAML_INVALID = "yaml_invalid", "the front matter is not YAML"
    YAML_FEATURE = (
        "yaml_feature",
        "tags, anchors, aliases, merges, flow and block scalars are refused",
    )
    YAML_TAB = "yaml_tab", "the front matter is indented with a tab"
    SECOND_DOCUMENT = "second_document", "the front matter contains a second YAML document"

    # Held: the artifact is valid, but not to be committed at this time or place.
    SECRET = "secret", "the content looks like a credential"
    MERGE_IN_PROGRESS = "merge_in_progress", "a merge is in progress"
    REBASE_IN_PROGRESS = "rebase_in_progress", "a rebase or `git am` is in progress"
    CHERRY_PICK_IN_PROGRESS = "cherry_pick_in_progress", "a cherry-pick is in progress"
    REVERT_IN_PROGRESS = "revert_in_progress", "a revert is in progress"
    BISECT_IN_PROGRESS = "bisect_in_progress", "a bisect is in progress"
    UNMERGED_INDEX = "unmerged_index", "the index contains unresolved conflicts"
    INDEX_LOCKED = "index_locked", "another git command holds index.lock"
    OTHER_BRANCH = (
        "other_branch",
        "the work is for another branch than the one that is checked out",
    )
    CHANGES_IN_THE_WAY = (
        "changes_in_the_way",
        "a merge would overwrite uncommitted changes in the work tree",
    )
    USER_COMMITTING = "user_committing", "a person is making a commit: a `git commit` is running"
    UNBORN_BRANCH = "unborn_branch", "the branch has no commit yet; a person makes the first one"
    PULL_IN_PROGRESS = (
        "pull_in_progress",
        "a `git pull` is running, and would fail if the branch moved",
    )
    DETACHED_HEAD = "detached_head", "HEAD is detached: a commit here would be on no branch"
    PROTECTED_BRANCH = (
        "protected_branch",
        "the configuration protects this branch, or another tool makes its commits",
    )
    BRANCH_BROKEN = "branch_broken", "the branch existed before, but its tip cannot be resolved"
    GITIGNORED = "gitignored", "git ignores this path"
    FOREIGN_REPOSITORY = "foreign_repository", "the path is inside another repository"
    ATTR_FILTER = "attr_filter", "a git attribute would rewrite this content"
    UNDONE_BY_USER = (
        "undone_by_user",
        "a person removed this content from the branch, by a reset or a commit",
    )
    OLDER_THAN_BRANCH = (
        "older_than_branch",
        "the file has an older version of the branch, or git wrote it: no agent did",
    )
    RECORDS_LOST = ("records_lost", "the branch has records that this version lacks")
    REF_LOCKED = "ref_locked", "another git command holds the lock of the branch"
    BRANCH_MOVED = "branch_moved", "the branch kept moving while the commit was made"
    NO_SPACE = "no_space", "the disk is full"
    STORAGE_FAILED = "storage_failed", "the file system refuses to store the data"
    REMOTE_CONFLICT = (
        "remote_conflict",
        "changed both here and by the team; a person has to choose",
    )
    REMOTE_AWAY = "remote_away", "the team's remote cannot be reached"
    TEAM_NOT_AGREED = (
        "team_not_agreed",
        "the git directory names a team that this user has not joined here",
    )
    REMOTE_REFUSED = "remote_refused", "the team's remote refuses the push"
    LEASE_HELD = "lease_held", "another clone holds the lease of this department"
    AUTO_COMMIT_OFF = "auto_commit_off", "the configuration turns automatic commits off"
    COMMIT_BUDGET = "commit_budget", "the configured number of commits per minute is reached"
    OBJECT_MISSING = "object_missing", "an object of the branch is missing or damaged"

    # Pending: checked again automatically.
    SETTLING = "settling", "the file changed a moment ago"
    BEING_WRITTEN = "being_written", "a process has the file open for writing"
    QUEUED = "queued", "waiting to be committed"

    # Ignored, and other remarks on a path.
    UNCHANGED = "unchanged", "the content is committed"
    NOT_AN_ARTIFACT = "not_an_artifact", "the protocol names no artifact at this path"
    DELETED = "deleted", "committed, but no longer in the work tree"
    INDEX_DIVERGED = "index_diverged", "the user has staged another version of this path"

    # Committed history that breaks a rule.
    SEVERAL_PATHS = "several_paths", "a coordination commit changes more than one path"
    SUBJECT_MISMATCH = "subject_mismatch", "the subject is not the prescribed one"
    TRAILER_MISMATCH = "trailer_mismatch", "the trailers do not describe the artifact"
    DISCRETIONARY_WORK = "discretionary_work", "a role continued to work after it had handed over"
    OUT_OF_LANE = "out_of_lane", "a role acted outside its authority, its routes or its area"

    # Compiled contexts.
    CONTEXT_STALE = "context_stale", "the compiled context differs from what its sources produce"
    CONTEXT_UNPROVED = (
        "context_unproved",
        "a line of a compiled context does not match its source",
    )

    # The environment.
    NOT_A_REPOSITORY = "not_a_repository", "there is no git repository here"
    BARE_REPOSITORY = "bare_repository", "the repository has no work tree"
    NOT_INITIALISED = "not_initialised", "there is no planning tree here"
    NOT_COMMITTED = "not_committed", "the branch lacks files that init made"
    UNSAFE_REPOSITORY = (
        "unsafe_repository",
        "the repository belongs to another user, or others can write to it",
    )
    NETWORK_FILESYSTEM = "network_filesystem", "locks are not reliable on this file system"
    NOT_RUNNING = "not_running", "no daemon watches this work tree"
    ALREADY_RUNNING = "already_running", "a daemon watches this work tree already"
    LOCK_TIMEOUT = "lock_timeout", "a lock was not free in time"
    OTHER_VERSION = (
        "other_version",
        "the daemon runs another version of yolo_fs than the installed one",
    )
    LOCK_LOST = "lock_lost", "the daemon's lock file was replaced"
    WATCH_LIMIT = "watch_limit", "the system's limit of file watches is reached"
    GIT_MISSING = "git_missing", "no usable git was found"
    GIT_FAILED = "git_failed", "git ended with an error"
    GIT_TIMEOUT = "git_timeout", "git did not answer in time"
    BAD_CONFIG = "bad_config", "the configuration is invalid"
    HOOK_BROKEN = "hook_broken", "one of our git hooks does not run"
    BAD_NAME = "bad_name", "a name contains characters that are not allowed"
    UNKNOWN_NAME = "unknown_name", "no such name in the protocol"
    BAD_USAGE = "bad_usage", "the command line has a wrong, missing or unknown word"
    DEADLINE_PASSED = "deadline_passed", "the wait timed out"
    INTERNAL_ERROR = "internal_error", "a bug in yolo_fs"


class Level(StrEnum):
    """How grave a finding is: an error rejects the artifact, a warning accompanies it."""

    ERROR = "error"
    WARNING = "warning"


class Grade(StrEnum):
    """Requirement level of a check: `must` rejects an artifact, `should` only warns."""

    MUST = "must"
    """A reader would draw a wrong conclusion, lose a value, or could not read it."""
    SHOULD = "should"
    """The form is not the documented one, and the meaning is clear."""


class Exit(IntEnum):
    """Exit codes of every command."""

    DONE = 0
    FINDINGS = 1
    USAGE = 2
    NOT_HERE = 3
    LOCK_TIMEOUT = 4
    GIT_FAILED = 5
    UNREADABLE = 65
    DEFECT = 70
    TRY_AGAIN = 75
    BAD_CONFIG = 78
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with an agent's file, where, what was expected and what to do next."""

    reason: Reason
    path: str = ""
    """POSIX path relative to the repository root, as found on disk."""
    line: int = 0
    """Line number from 1; 0 for the whole file."""
    at: str = ""
    """JSON pointer into the line, such as `/mh/tr`; empty for the whole line."""
    message: str = ""
    """What was found. May quote the file: escape with `safe` before printing it."""
    expected: str = ""
    """What the protocol asks, with an example."""
    hint: str = ""
    """What to do next, as sentences."""
    level: Level = Level.ERROR
    command: str = ""
    """Command that mends it or shows its cause: the first that the hint quotes, unless given."""

    def __post_init__(self) -> None:
        if self.hint:
            object.__setattr__(self, "hint", as_sentence(self.hint))
        if not self.command and (quoted := _COMMAND.search(self.hint)):
            object.__setattr__(self, "command", quoted[1])
        _redact(self)

    def __str__(self) -> str:
        place = ":".join(part for part in (safe(self.path), str(self.line or "")) if part)
        pointer = f"at {safe(self.at)}" if self.at else ""
        where = " ".join(part for part in (place, pointer) if part)
        is_said = not self.command or self.command in self.hint
        stop = "" if self.hint else "."
        command = "" if is_said else f"{stop} Run: {safe(self.command, _OWN_LENGTH)}"
        sentence = f"{self.reason.value}: {self.why}{command}"
        return f"{where}: {sentence}" if where else sentence

    @property
    def fault(self) -> str:
        """What was found and what was expected, escaped for a terminal."""
        message = safe(self.message) or self.reason.sentence
        expected = f"; expected {safe(self.expected, _OWN_LENGTH)}" if self.expected else ""
        return f"{message}{expected}"

    @property
    def why(self) -> str:
        """The same, and what to do next."""
        return f"{self.fault}. {safe(self.hint, _OWN_LENGTH)}" if self.hint else self.fault

    @property
    def place_in_file(self) -> str:
        """Its line and pointer, such as `line 3 /mh/tr`; empty for the whole file."""
        return f"line {self.line} {safe(self.at)}".rstrip() if self.line else ""

    def as_json(self) -> dict[str, Any]:
        """Return the finding as the member of `findings` that every `--json` envelope carries."""
        return {
            "reason": self.reason.value,
            "path": self.path,
            "line": self.line,
            "at": self.at,
            "message": self.message or self.reason.sentence,
            "expected": self.expected,
            "hint": self.hint,
            "command": self.command,
            "level": self.level.value,
        }

    def as_error(self, place: str, exit_code: Exit) -> YoloError:
        """Return the error of whoever cannot go on without what it is about, at a place."""
        message = f"{safe(place)}: {self.message or self.reason.sentence}"
        return YoloError(self.reason, message, hint=self.hint, exit_code=exit_code)

    @classmethod
    def from_json(cls, payload: Mapping[str, Any]) -> Finding:
        """Return the finding that `as_json` has written.

        Raises:
            KeyError, ValueError: it is of another version.
        """
        names = ("path", "line", "at", "message", "expected", "hint", "command")
        plain = {name: payload[name] for name in names}
        return cls(Reason.of(payload["reason"]), level=Level(payload["level"]), **plain)


def as_sentence(text: str) -> str:
    """Return a text with a capital where a word begins it, and with a stop.

    No stop follows what is to be copied: a command or a subject behind a colon.
    """
    if _BEGINS_WITH_A_WORD.match(text):
        text = text[0].upper() + text[1:]
    _, colon, last = text.rpartition(": ")
    is_copied = colon and ". " not in last
    return text if not text or is_copied or text[-1] in ".?!:…" else f"{text}."


_BEGINS_WITH_A_WORD = re.compile(r"[a-z]+(?=[ ,;:]|$)")
_COMMAND = re.compile(r"'((?:yolo-fs|git) [^'\n]{1,200})'")


def pointer_to(*keys: str | int) -> str:
    """Return the JSON pointer of nested keys."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)


class Fault(NamedTuple):
    """What is wrong with one value: a finding without its file and line."""

    reason: Reason
    at: str = ""
    """JSON pointer."""
    message: str = ""
    expected: str = ""
    hint: str = ""
    level: Level = Level.ERROR
    grade: Grade = Grade.MUST
    """The requirement level; an artifact's `should` becomes a warning."""

    def as_finding(self, path: str, line: int = 0) -> Finding:
        """Return the fault as a finding in a file."""
        return Finding(
            self.reason, path, line, self.at, self.message, self.expected, self.hint, self.level
        )


def _redact(finding: Finding) -> None:
    """Hide the credentials that a finding quotes, before it is shown or stored."""
    from yolo_fs.core.credentials import redact  # compiles patterns that few processes need

    for name in ("at", "message", "expected", "hint", "command"):
        text = getattr(finding, name)
        if text and (shown := redact(text)) != text:
            object.__setattr__(finding, name, shown)
    if "~" in finding.at:  # a pointer escapes slashes, and a credential may hold some
        key = finding.at.replace("~1", "/").replace("~0", "~")
        if (shown := redact(key)) != key:
            object.__setattr__(finding, "at", shown)


def errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that reject, without the warnings."""
    return tuple(finding for finding in findings if finding.level is Level.ERROR)


_REASONS_OF_EXIT: Mapping[Exit, tuple[Reason, ...]] = {
    Exit.USAGE: (
        Reason.BAD_FORMAT, Reason.BAD_NAME, Reason.BAD_USAGE, Reason.UNKNOWN_COMMIT,
        Reason.UNKNOWN_NAME, Reason.UNKNOWN_REFERENCE, Reason.UNKNOWN_TYPE,
    ),
    Exit.NOT_HERE: (
        Reason.BARE_REPOSITORY, Reason.NETWORK_FILESYSTEM, Reason.NOT_A_REPOSITORY,
        Reason.NOT_INITIALISED, Reason.NOT_REGULAR, Reason.NOT_RUNNING, Reason.TEAM_NOT_AGREED,
        Reason.UNSAFE_REPOSITORY,
    ),
    Exit.LOCK_TIMEOUT: (Reason.LOCK_TIMEOUT,),
    Exit.GIT_FAILED: (
        Reason.BRANCH_BROKEN, Reason.GIT_FAILED, Reason.GIT_MISSING, Reason.GIT_TIMEOUT,
        Reason.OBJECT_MISSING,
    ),
    Exit.UNREADABLE: (Reason.UNREADABLE,),
    Exit.DEFECT: (Reason.INTERNAL_ERROR,),
    Exit.TRY_AGAIN: (
        Reason.BRANCH_MOVED, Reason.CHANGES_IN_THE_WAY, Reason.DEADLINE_PASSED, Reason.INDEX_LOCKED,
        Reason.LEASE_HELD, Reason.NO_SPACE, Reason.OTHER_BRANCH, Reason.REF_LOCKED,
        Reason.REMOTE_AWAY, Reason.REMOTE_REFUSED, Reason.STORAGE_FAILED,
    ),
    Exit.BAD_CONFIG: (Reason.BAD_CONFIG,),
}  # fmt: skip
_EXIT_OF_REASON = {reason: code for code, some in _REASONS_OF_EXIT.items() for reason in some}


def exit_code_of(reason: Reason) -> Exit:
    """Return the code with which a command ends for a reason, unless it says otherwise."""
    return _EXIT_OF_REASON.get(reason, Exit.FINDINGS)


class YoloError(Exception):
    """A fault of the environment; raised where it is detected, printed once at the boundary."""

    def __init__(
        self, reason: Reason, message: str = "", *, hint: str = "", exit_code: Exit | None = None
    ):
        """`exit_code`: only where it is another than `exit_code_of` gives."""
        from yolo_fs.core.credentials import redact  # compiles patterns that few processes need

        message = redact(message)
        super().__init__(message or reason.sentence)
        self.reason = reason
        self.message = message or reason.sentence
        self.hint = as_sentence(hint)
        self.exit_code = exit_code_of(reason) if exit_code is None else exit_code

    def as_finding(self) -> Finding:
        """Return the error as a finding for the JSON envelope."""
        return Finding(self.reason, message=self.message, hint=self.hint)


_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SHOWN_LENGTH = 200
_OWN_LENGTH = 600
"""Maximum length of our own text, examples included: half an example is useless."""


FETCH_LACKING = "git fetch --refetch --no-filter"
"""What brings a clone the objects that it lacks; without the option a partial clone stays one."""


def safe(text: str, limit: int = _SHOWN_LENGTH) -> str:
    r"""Return untrusted text fit for a terminal or a log: controls escaped, length capped.

    C0, C1, DEL, bidirectional and other invisible characters become `\xNN` or `\uNNNN`.
    """
    shown = text[: limit + 1]
    if not shown.isprintable():
        shown = "".join(map(_escaped, shown))
    return shown if len(text) <= limit else shown[:limit] + "…"


def hint_for_unknown(name: str, names: Iterable[str], shown_by: str = "") -> str:
    """Return a hint for a name that does not exist: the one that was meant, and all there are.

    `shown_by`: the command that lists them, where they are too many for a hint.
    """
    from difflib import get_close_matches  # only an error needs it

    known = list(names)
    near = get_close_matches(name, known, 1, _ALIKE)
    meant = f"Did you mean {near[0]}? " if near else ""
    listed = f"Known names: {', '.join(known)}." if known else "None exists yet."
    return meant + (f"'{shown_by}' lists all." if shown_by else listed)


_ALIKE = 0.65
"""Share of two names that is equal at least where one was meant for the other."""


def counted(number: int, thing: str) -> str:
    """Return a number with its noun, in singular or plural."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def shortened(
    texts: Iterable[str], most: int = 10, *, shown_by: str = "", between: str = ", "
) -> str:
    """Return the first texts joined, with the number of others and how to see them.

    `shown_by`: a command or a file, empty where the reader has it already.
    """
    listed = tuple(texts)
    text = between.join(listed[:most])
    if len(listed) <= most:
        return text
    where = f" (see {shown_by})" if shown_by else ""
    return f"{text} and {len(listed) - most} more{where}"


def safe_lines(text: str) -> str:
    """Return a whole untrusted text of several lines, escaped as by `safe`.

    Only tabs and line ends stay.
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    lines = text.split("\n")
    ends = ["\r" if line.endswith("\r") else "" for line in lines[:-1]]
    bodies = (line.removesuffix(end) for line, end in zip(lines, [*ends, ""], strict=True))
    escaped = (
        "".join(char if char == "\t" else _escaped(char) for char in body) for body in bodies
    )
    return "\n".join(f"{line}{end}" for line, end in zip(escaped, [*ends, ""], strict=True))


def _escaped(char: str) -> str:
    if unicodedata.category(char) not in _HIDDEN:
        return char
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
