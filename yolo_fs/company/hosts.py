"""The programs that run an agent: a row for each, how it is started and how its stream is parsed.

The user names the program: on the command line, or in git's configuration of this user (`git config
--global yolo-fs.host.claude …`), and so whom each plays. The repository's own configuration never
counts.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from yolo_fs.core.credentials import redact
from yolo_fs.core.foreign_json import parse
from yolo_fs.core.reasons import Exit, Reason, YoloError, hint_for_unknown, safe
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.roster import AGENT_BY_NAME, role_named_in
from yolo_fs.workspace.settings import ConfiguredKey

_SECTION = "yolo-fs.host."
_OF_ROLE = f"{_SECTION}of."
_LINE_BYTES = 1 << 20
"""Maximum length of a stream's line; a longer line is ignored."""
_LIMIT_STATUS = 429
_REFUSING_STATUS = (401, 402, 403)
_REFUSING_WORDS = ("authentication_failed", "billing_error", "401 Unauthorized", "403 Forbidden")
_REFUSING_WORDS_OF_CODEX = (
    *_REFUSING_WORDS, "Missing environment variable: ", "token could not be refreshed",
)  # fmt: skip
_LARGEST = 10**9
"""Upper limit of a number in a bill, so that many can be added."""


class StreamNote(NamedTuple):
    """The content of one line of an agent's stream."""

    tokens: int = 0
    cost_usd: float = 0.0
    is_limited: bool = False
    """The host is rate-limited: HTTP 429."""
    tool: str = ""
    answer: str = ""
    """The full last message, if this line has it."""
    refusal: str = ""
    """Why the host's service lets nobody in, such as a key that it does not accept."""


class HostProgram(NamedTuple):
    """One program that runs agents."""

    name: str
    command: str
    """Split like a shell command; the gaps of `roles.gaps_of` are filled in."""
    read: Callable[[Mapping[str, Any]], StreamNote]
    keeps_to_roster: bool = False
    """It gives an agent exactly the tools of the roster. What a role has no tool for, it states in
    its last message."""
    model_option: str = ""
    """Option that names a model; empty where only the gap `{model}` and the environment do."""
    package: str = ""
    """Where npm has it."""
    can_commit: bool = True
    """Whether `.git` can be written where its agents work; else their source is committed in their
    name once they have ended.
    """

    def words(self, names: Mapping[str, str], model: str = "") -> list[str]:
        """Return the command line of one agent; `model`: empty where its host chooses."""
        words = [_filled(word, names) for word in shlex.split(self.command)]
        return [*words, self.model_option, model] if model and self.model_option else words


def _filled(word: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def notes_in(host: HostProgram, data: bytes) -> Iterator[StreamNote]:
    """Yield the notes in the complete lines of a stream; a line that is no JSON object has none."""
    for line in data.split(b"\n"):
        if not line.strip() or len(line) > _LINE_BYTES:
            continue
        try:
            value = parse(line, _LINE_BYTES)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield host.read(value)


def read_claude(line: Mapping[str, Any]) -> StreamNote:
    """Parse a line of `--output-format stream-json`; the last one has the bill."""
    if line.get("type") == "result":
        tokens, cost_usd = _bill_of_claude(line)
        return StreamNote(
            tokens=tokens,
            cost_usd=cost_usd,
            is_limited=_is_limited(line),
            answer=_whole(line.get("result")),
            refusal=_refusal(line, _text(line.get("result"))),
        )
    message = line.get("message")
    parts = message.get("content") if isinstance(message, Mapping) else None
    tool = text = ""
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, Mapping):
            tool = _text(part.get("name")) if part.get("type") == "tool_use" else tool
            text = _text(part.get("text")) or text
    return StreamNote(is_limited=_is_limited(line), tool=tool, refusal=_refusal(line, text))


def _bill_of_claude(line: Mapping[str, Any]) -> tuple[int, float]:
    """Return tokens and cost since the last such line: its `usage` leaves its subagents out, and
    its totals begin with the first line.
    """
    cost_usd = float(_amount(line.get("total_cost_usd")))
    since = line.get("model_usage_since_last_result")
    used = since if isinstance(since, Mapping) else line.get("modelUsage")
    models = (
        [model for model in used.values() if isinstance(model, Mapping)]
        if isinstance(used, Mapping)
        else []
    )
    if not models:
        return _sum(line.get("usage")), cost_usd
    if _amount(line.get("result_index")) > 0:
        cost_usd = float(sum(_amount(model.get("costUSD")) for model in models))
    return sum(_sum(model, _COUNTED_OF_MODEL) for model in models), cost_usd


def read_codex(line: Mapping[str, Any]) -> StreamNote:
    """Parse a line of `codex exec --json`; the end of each turn has its usage."""
    item = line.get("item")
    item = item if isinstance(item, Mapping) else {}
    kind = _text(item.get("type"))
    tokens = _sum(line.get("usage")) if line.get("type") == "turn.completed" else 0
    tool = kind if kind not in ("", "agent_message", "reasoning") else ""
    answer = _whole(item.get("text")) if kind == "agent_message" else _failure(line)
    refusal = _refusal(line, _failure(line), _REFUSING_WORDS_OF_CODEX)
    return StreamNote(tokens, 0.0, _is_limited(line), tool, answer, refusal)


def _failure(line: Mapping[str, Any]) -> str:
    error = line.get("error") if line.get("type") == "turn.failed" else {}
    message = error.get("message") if isinstance(error, Mapping) else ""
    return _text(message or (line.get("message") if line.get("type") == "error" else ""))


_COUNTED = ("input_tokens", "output_tokens", "cache_creation_input_tokens",
            "cache_read_input_tokens")  # fmt: skip


_COUNTED_OF_MODEL = ("inputTokens", "outputTokens", "cacheReadInputTokens",
                     "cacheCreationInputTokens")  # fmt: skip


def _sum(usage: object, keys: Sequence[str] = _COUNTED) -> int:
    if not isinstance(usage, Mapping):
        return 0
    return sum(int(_amount(usage.get(key))) for key in keys)


def _amount(value: object) -> int | float:
    """Return a number of a bill, 0 if it is invalid: no line may increase the budget."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return min(max(value, 0), _LARGEST)


def _is_limited(line: Mapping[str, Any]) -> bool:
    error = line.get("error")
    places = (line, error if isinstance(error, Mapping) else {})
    keys = ("status", "error_status", "api_error_status", "code")
    text = _error_text(line)
    return any(place.get(key) == _LIMIT_STATUS for place in places for key in keys) or any(
        word in text for word in ("rate_limit", "429 Too Many")
    )


def _refusal(line: Mapping[str, Any], message: str, words: Sequence[str] = _REFUSING_WORDS) -> str:
    """Return what a line says of a service that lets nobody in; empty for any other line.

    `message`: the line's own words; `words`: what an error says then. Fields that an agent may
    print of another service do not count.
    """
    status = line.get("error_status") or line.get("api_error_status")
    text = _error_text(line)
    if status not in _REFUSING_STATUS and not any(word in text for word in words):
        return ""
    return message or " ".join(map(str, filter(None, (status, text))))


def _error_text(line: Mapping[str, Any]) -> str:
    """Return the words of a line's error."""
    error = line.get("error")
    text = _text(line.get("message")) if line.get("type") in ("error", "turn.failed") else ""
    if isinstance(error, Mapping):
        return text + _text(error.get("message")) + _text(error.get("type"))
    return text + _text(error)


def _whole(value: object) -> str:
    return value if isinstance(value, str) else ""


def _text(value: object) -> str:
    return value[:2000] if isinstance(value, str) else ""


HOSTS = (
    HostProgram("command", "", read_claude),
    HostProgram(
        "claude",
        "claude -p --plugin-dir {plugin} --agent yolo:yolo-{agent}"
        " --output-format stream-json --verbose --permission-mode acceptEdits"
        " --allowedTools 'Bash(yolo-fs:*)'",  # without a terminal nobody can be asked for it
        read_claude,
        keeps_to_roster=True,
        model_option="--model",
        package="@anthropic-ai/claude-code",
    ),
    HostProgram(
        "codex",
        "codex exec --json --sandbox {sandbox} -c developer_instructions={definition}"
        " -c allow_login_shell=false -",  # a profile may set another PATH, without yolo-fs
        read_codex,
        keeps_to_roster=True,
        model_option="--model",
        package="@openai/codex",
        can_commit=False,  # its sandbox shows .git read-only, so that nobody plants a hook
    ),
)
"""Programs that run an agent. `command` is the row for any other program."""

DEFAULT_HOST = "claude"
_ANY_PROGRAM = "command"
HOST_BY_NAME = {row.name: row for row in HOSTS}


class Hosts(NamedTuple):
    """Who plays the agents of a run: one host everybody, and others some of them."""

    everybody: HostProgram
    of_names: Mapping[str, HostProgram] = MappingProxyType({})
    """Role, or agent of one department → its host."""

    def of(self, agent: str) -> HostProgram:
        """Return the host of an agent: its own name is more precise than its role."""
        row = AGENT_BY_NAME.get(agent)
        of_role = self.of_names.get(row.role, self.everybody) if row else self.everybody
        return self.of_names.get(agent, of_role)


_EVERYBODY = ""


def hosts_for(repository: Repository, words: Sequence[str], program: str) -> Hosts:
    """Return who plays the agents, as the user says, with the command line of each host.

    `words`: the hosts of the command line, `HOST` or `ROLE=HOST`; once one is for everybody, git's
    configuration says nothing more. `program`: what `command` is; where that is no host of the
    command line, the host of everybody.

    Raises:
        YoloError: UNKNOWN_NAME for a role or a host that does not exist; EMPTY_VALUE where nothing
            says which program a host is; BAD_FORMAT for a broken quote.
    """
    own = _own_settings(repository)
    names = dict(map(_of_word, words))
    if program and not {_EVERYBODY, _ANY_PROGRAM} & {*names, *names.values()}:
        names[_EVERYBODY] = _ANY_PROGRAM
    if _EVERYBODY not in names:
        names = {**dict(_of_settings(own)), **names}
    of_program = _ANY_PROGRAM if _ANY_PROGRAM in names.values() else names[_EVERYBODY]
    rows = {
        name: _host_for(own, name, program if name == of_program else "") for name in names.values()
    }
    of_names = {role: rows[name] for role, name in names.items() if role != _EVERYBODY}
    return Hosts(rows[names[_EVERYBODY]], of_names)


def _of_word(word: str) -> tuple[str, str]:
    role, sign, host = word.rpartition("=")
    return _checked(f"--host {word}", role if sign else None, host)


def _of_settings(own: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    key = f"{_SECTION}default"
    yield _checked(key, None, own.get(key) or DEFAULT_HOST)
    for key, host in own.items():
        if key.startswith(_OF_ROLE) and host:
            yield _checked(key, key.removeprefix(_OF_ROLE), host)


def _checked(place: str, role: str | None, host: str) -> tuple[str, str]:
    """Return the name of a role and of its host.

    `place`: the option or the key that says so; `role`: None for everybody.
    """
    name = _EVERYBODY if role is None else role_named_in(place, role)
    if host not in HOST_BY_NAME:
        raise YoloError(
            Reason.UNKNOWN_NAME,
            f"{safe(place)} names an unknown host: {safe(host)!r}",
            hint=hint_for_unknown(host, HOST_BY_NAME),
        )
    return name, host


def _own_settings(repository: Repository) -> Mapping[str, str]:
    """Return what the user's own configuration of git says of anything."""
    settings = (setting for setting in repository.settings() if not setting.is_of_repository)
    return {setting.key: setting.value for setting in settings}


def _host_for(own: Mapping[str, str], name: str, given: str) -> HostProgram:
    """Return a host with its command line.

    `given`: from the command line; empty for the user's git configuration, else the row's default.
    """
    row = HOST_BY_NAME[name]
    command = given or own.get(f"{_SECTION}{name}", "") or row.command
    try:
        words: Sequence[str] = shlex.split(command)
    except ValueError as error:
        raise YoloError(
            Reason.BAD_FORMAT,
            f"{safe(command)!r} is not a command line: {error}",
            hint="Quote it as in a shell.",
        ) from error
    if not words:
        raise YoloError(
            Reason.EMPTY_VALUE,
            f"no program is set for the host {name}",
            hint="Name it: --with './my-agent {agent}', or "
            f"git config --global {_SECTION}{name} '/path/to/my-agent {{agent}}'.",
            exit_code=Exit.USAGE,
        )
    if not given and os.path.dirname(words[0]) and not os.path.isabs(words[0]):
        raise YoloError(
            Reason.BAD_FORMAT,
            f"{safe(words[0])} of your git configuration is a relative path: another program in "
            "each repository",
            hint="Name it by its whole path, or by a name that PATH knows.",
        )
    if command != row.command:  # it names the model itself, by a gap or in the user's own words
        row = row._replace(model_option="")
    return row._replace(command=command)


def settings_of_hosts(repository: Repository) -> Iterator[ConfiguredKey]:
    """Yield each key of a host that git's configuration sets; the repository's count for nothing.

    Raises:
        YoloError: as `Repository.settings`.
    """
    settings = [each for each in repository.settings() if each.key.startswith(_SECTION)]
    defaults = {f"{_SECTION}{row.name}": row.command for row in HOSTS}
    defaults[f"{_SECTION}default"] = DEFAULT_HOST
    for key in dict.fromkeys(each.key for each in settings):
        default = defaults.get(key)
        value, origin, refused = default, "default", None
        for each in (each for each in settings if each.key == key):
            if each.is_of_repository:
                refused = redact(each.value)
            else:
                value, origin = redact(each.value), f"git config, {each.scope}"
        yield ConfiguredKey(key, value, default, origin, refused)


def check_installed(host: HostProgram, root: str) -> None:
    """Refuse a host whose program is not there, before anything is begun for it.

    `root`: where its agents start. A name with a gap is another program for each agent.

    Raises:
        YoloError: FILE_MISSING.
    """
    program = shlex.split(host.command)[0]
    path = os.path.normpath(os.path.join(root, program)) if os.path.dirname(program) else program
    if "{" in program or shutil.which(path):
        return
    if os.path.isfile(path):
        raise YoloError(
            Reason.FILE_MISSING,
            f"{safe(path, 1000)} is not executable, so no agent can be started",
            hint=f"Run 'chmod +x {safe(shlex.quote(path), 1000)}', or name a program with --with.",
            exit_code=Exit.BAD_CONFIG,
        )
    how = f" (npm install -g {host.package})" if host.package else ""
    raise YoloError(
        Reason.FILE_MISSING,
        f"{safe(path, 1000)} is not installed here, so no agent can be started",
        hint=f"Install it{how}, choose another host with --host, or name a program with --with.",
        exit_code=Exit.BAD_CONFIG,
    )
