"""The MCP server: tools, resources and their changes. Only here the library `mcp` is known."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import json
import os
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, make_dataclass
from functools import partial
from typing import Any, BinaryIO, cast, get_type_hints
from urllib.parse import unquote, urlsplit

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.server.mcpserver.resources import FunctionResource
from mcp.server.mcpserver.tools import Tool
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    CallToolResult,
    ErrorData,
    GetPromptResult,
    JSONRPCError,
    JSONRPCNotification,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
    ToolAnnotations,
    jsonrpc_message_adapter,
)

from yolo_fs import __version__
from yolo_fs.core.json_form import to_json, visible
from yolo_fs.core.reasons import Finding, Reason, YoloError, safe
from yolo_fs.git.repository import Repository
from yolo_fs.mcp.parameters import ANSWERS, FORMER_NAMES, PARAMETERS, described
from yolo_fs.mcp.refusal import ToolRefusedError
from yolo_fs.mcp.tools import ToolAnswer, Tools, with_errors_as_text
from yolo_fs.system.files import read, stamp_at
from yolo_fs.system.journal import Journal

INSTRUCTIONS = """\
Coordinates a team of agents that share one git repository. Call `team_status` first: it shows whose
turn it is. Write artifacts with `append_record` and `write_artifact`; a daemon checks and commits
them, so never commit them yourself. A step is complete when its artifact is committed. Call
`check_permission` before you act outside your role, `gate_status` before you rely on another
department, and `escalate` when you are blocked."""

BOARD, LIST, PROTOCOL = "yolo-fs://board", "yolo-fs://artifacts", "yolo-fs://protocol"
_READS = (
    "team_status", "inbox", "whose_turn", "validate_artifact", "check_permission", "gate_status",
)  # fmt: skip
_POLL_S = 0.5
_ROOTS_S = 5.0
"""How long a client may take to say where it works."""
_MOST_BYTES = 4 << 20


ROWS = {
    "agents": "protocol.roster.ROSTER",
    "artifacts": "artifacts.table.ARTIFACTS",
    "authority": "protocol.authority.AUTHORITY",
    "commits": "protocol.workflow.COMMITS",
    "departments": "protocol.departments.DEPARTMENTS",
    "escalations": "protocol.escalation.ESCALATIONS",
    "gates": "protocol.gates.GATES",
    "isolation": "protocol.isolation.SCOPES protocol.isolation.BORDERS",
    "messages": "protocol.authority.ROUTES",
    "steps": "protocol.workflow.STEPS",
}
"""The tables of the protocol that an agent may want to read, imported when they are read: a host
waits for us at its start."""

_TABLES = {
    "tables": sorted(ROWS),
    "kinds": f"{PROTOCOL}/kinds",
    "schemas": "yolo-fs://schema/KIND",
}


def _rows(name: str) -> Any:
    tables = [_imported(place) for place in ROWS[name].split()]
    if name == "artifacts":
        return [{"kind": row.kind, "file": row.file} for row in tables[0]]
    return tables[0] if len(tables) == 1 else [row for table in tables for row in table]


def _imported(place: str) -> Any:
    """Return what stands in a module of ours, such as `cli.status.status`."""
    module, _, name = place.rpartition(".")
    return getattr(importlib.import_module(f"yolo_fs.{module}"), name)


class Server:
    """Serves one repository on stdin and stdout."""

    def __init__(self, start: str, agent: str = ""):
        self._bus = InMemorySubscriptionBus()
        self._tools = Tools(start, agent)
        self._server = _Names(
            self._find_root,
            "yolo-fs",
            instructions=INSTRUCTIONS,
            version=__version__,
            log_level="ERROR",
            lifespan=self._run_lifespan,
            subscriptions=self._bus,
            tools=[_tool(name, getattr(self._tools, name)) for name in PARAMETERS],
        )
        self._add_resources()

    def run(self) -> None:
        """Serve until the client closes our stdin, which is taken for good."""
        anyio.run(self._serve, _take_stdin())

    async def _serve(self, stdin: BinaryIO) -> None:
        """Serve as the library does, but answer what it would drop in silence."""
        requests = _Requests(stdin)
        server = self._server._lowlevel_server
        async with stdio_server(cast("Any", requests)) as (read_stream, write_stream):
            requests.refuse_by(write_stream.send)
            await server.run(read_stream, write_stream, server.create_initialization_options())

    async def _find_root(self, context: Context[Any, Any]) -> None:
        """Where no repository is here, go to the first one that the client says it works in.

        The client is asked at each call: it may open another folder.
        """
        if _is_in_repository(self._tools.start):
            return
        with suppress(MCPError, ValueError, OSError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # hosts have roots, whatever follows them one day
            with anyio.fail_after(_ROOTS_S):
                roots = (await context.session.list_roots()).roots
            for root in roots:
                folder = await anyio.to_thread.run_sync(_repository_at, str(root.uri))
                if folder:
                    os.chdir(folder)
                    self._tools.move_to(folder)
                    return

    def _add_resources(self) -> None:
        fixed: Mapping[str, tuple[str, Callable[[], Any]]] = {
            BOARD: ("The team on one screen: phases, steps, gates, what is held or refused.",
                    self._board),
            LIST: ("Every artifact with its state: committed, pending, held or rejected.",
                   lambda: self._board()["candidates"]),
            PROTOCOL: ("The names of the protocol's tables and kinds.", lambda: _TABLES),
            **{f"{PROTOCOL}/{name}": (f"Rows of the table {name!r}.", partial(_rows, name))
               for name in ROWS},
            f"{PROTOCOL}/kinds": ("Every kind that `validate_artifact` knows.",
                                  lambda: self._tools.reply("schema.list_").data),
        }  # fmt: skip
        for uri, (text, rows) in fixed.items():
            function = partial(_written, with_errors_as_text(rows))
            self._server.add_resource(
                FunctionResource.from_function(
                    function,
                    uri=uri,
                    name=uri.removeprefix("yolo-fs://"),
                    description=text,
                    mime_type="application/json",
                )
            )
        self._server.resource(
            f"{LIST}/{{+path}}", name="artifact", description="One artifact as it is on disk."
        )(self._content)
        self._server.resource(
            "yolo-fs://schema/{+kind}", name="schema", description="JSON Schema of a kind."
        )(self._schema)

    def _board(self) -> Any:
        return to_json(self._tools.reply("status.status", watch=False, revision=None).data)

    def _schema(self, kind: str) -> str:
        show = partial(self._tools.reply, "schema.show", kind=kind)
        return _written(with_errors_as_text(lambda: show().data))

    def _content(self, path: str) -> str:
        return _read(with_errors_as_text(lambda: self._text_of(path)))

    def _text_of(self, path: str) -> str:
        place = self._tools.caller("").readable(path)
        if _imported("artifacts.classify.classify")(place) is None:
            raise ToolRefusedError(
                f"not_an_artifact: {safe(place)} is none of the protocol's artifacts"
                f"\nNext: {LIST} lists them."
            )
        outcome = read(os.path.abspath(self._tools.start), place, _MOST_BYTES)
        if isinstance(outcome, Finding):
            raise ToolRefusedError(f"{outcome.reason.value}: {outcome.message}")
        return outcome.data.decode("utf-8", "replace")

    @asynccontextmanager
    async def _run_lifespan(self, _: object) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow)
            yield None
            group.cancel_scope.cancel()

    async def _follow(self) -> None:
        """Tell subscribers what the journal says has changed."""
        try:
            with Repository(self._tools.start) as repository:
                folder, root = repository.own_dir, repository.root
        except YoloError:  # nothing changes here; what is asked is answered with why
            return
        journal = Journal(folder, source=root)
        path = os.path.join(folder, "events.jsonl")
        seen, stamp, is_ready = -1, None, False
        while True:
            now = await anyio.to_thread.run_sync(stamp_at, path)
            if now != stamp or seen < 0:
                events = await anyio.to_thread.run_sync(list, journal.read(max(seen, 0)))
                changed = {_subject(event) for event in events} if seen >= 0 else set()
                seen = max([seen, 0, *(int(event.get("seq", 0)) for event in events)])
                stamp = now
                for uri in sorted(changed | ({BOARD, LIST} if changed else set())):
                    await self._bus.publish(ResourceUpdated(uri=uri))
            await anyio.sleep(_POLL_S)
            if not is_ready:  # the host's first questions went before what they need
                await anyio.to_thread.run_sync(_imported, "cli.status.status")
                is_ready = True


class _Names(MCPServer[None]):
    """Answers calls by the names of tools and prompts, the former ones too, and says which one a
    wrong name is near.
    """

    def __init__(
        self, before: Callable[[Context[Any, Any]], Awaitable[None]], *words: Any, **named: Any
    ):
        """`before`: done before each call."""
        super().__init__(*words, **named)
        self._before = before

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> Any:
        known = FORMER_NAMES.get(name, name)
        if known not in PARAMETERS:
            raise ToolError(_no_such("tool", name, tuple(PARAMETERS)))
        strange = [each for each in arguments if each not in PARAMETERS[known]]
        if strange:
            raise ToolError(_no_such("parameter", strange[0], tuple(PARAMETERS[known])))
        if context is not None:
            await self._before(context)
        return await super().call_tool(known, arguments, context)

    async def list_prompts(self) -> list[Prompt]:
        skills = await anyio.to_thread.run_sync(_commands)
        return [
            Prompt(
                name=name,
                description=skill.description,
                arguments=[
                    PromptArgument(
                        name="about",
                        description=skill.hint or "What is to be built; empty to continue.",
                        required=bool(skill.hint),
                    )
                ],
            )
            for name, skill in skills.items()
        ]

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[Any, Any] | None = None,
    ) -> GetPromptResult:
        skills = await anyio.to_thread.run_sync(_commands)
        if name not in skills:
            raise ValueError(_no_such("prompt", name, tuple(skills)))
        text = _imported("definitions.skills.prompt_of")(
            skills[name], str((arguments or {}).get("about", ""))
        )
        return GetPromptResult(
            description=skills[name].description,
            messages=[PromptMessage(role="user", content=TextContent(type="text", text=text))],
        )


def _commands() -> Mapping[str, Any]:
    """Return the commands that start agents, by name."""
    return {
        skill.name: skill for skill in _imported("definitions.skills.SKILLS") if skill.starts_agents
    }


def _no_such(what: str, name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, (*names, *FORMER_NAMES), 1, 0.5)
    meant = f"Did you mean `{FORMER_NAMES.get(near[0], near[0])}`? " if near else ""
    wrong = f"{Reason.UNKNOWN_NAME.value}: no {what} {safe(name, 80)!r}"
    return f"{wrong}\nNext: {meant}Known names: {', '.join(names)}."


def _is_in_repository(start: str) -> bool:
    with suppress(YoloError):
        Repository(start).close()
        return True
    return False


def _repository_at(uri: str) -> str:
    """Return the work tree that a root of the client's lies in; empty for none."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return ""
    with suppress(YoloError, OSError, ValueError), Repository(unquote(parts.path)) as repository:
        return repository.root
    return ""


class _Requests:
    """The lines of a client that are requests; all others are answered here."""

    def __init__(self, stdin: BinaryIO):
        self._stdin = stdin
        self._can_answer = anyio.Event()
        self._send: Callable[[SessionMessage], Awaitable[None]] | None = None

    def refuse_by(self, send: Callable[[SessionMessage], Awaitable[None]]) -> None:
        """Take what sends an answer."""
        self._send = send
        self._can_answer.set()

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await anyio.to_thread.run_sync(_read_line, self._stdin):
            text = line.decode("utf-8", "replace")
            fault = _find_line_fault(line, text)
            if fault is None:
                yield text
            elif text.strip():
                await self._refuse(text, fault)

    async def _refuse(self, text: str, fault: ErrorData) -> None:
        await self._can_answer.wait()
        assert self._send is not None
        request_id = _fields_of(text).get("id")
        is_id = isinstance(request_id, int | str) and not isinstance(request_id, bool)
        answer = JSONRPCError(jsonrpc="2.0", id=request_id if is_id else None, error=fault)
        await self._send(SessionMessage(answer))


_LONGEST = 16 << 20
"""Bytes of the longest message."""


def _read_line(stream: BinaryIO) -> bytes:
    """Return the next line, of which no more is kept than shows that it is too long; empty at the
    end.
    """
    line = more = stream.readline(_LONGEST + 1)
    while len(line) > _LONGEST and more and not more.endswith(b"\n"):
        more = stream.readline(1 << 20)
    return line


def _fields_of(text: str) -> Mapping[str, Any]:
    """Return the fields of a message, none where it is no object that JSON-RPC could find an id
    in.
    """
    with suppress(ValueError, RecursionError):
        message = json.loads(text)
        return message if isinstance(message, dict) else {}
    return {}


def _find_line_fault(line: bytes, text: str) -> ErrorData | None:
    """Return why a line is no message; None when it is one."""
    what = "expected one JSON-RPC 2.0 message as an object on one line"
    if len(line.removesuffix(b"\n")) > _LONGEST:
        what = f"a message has at most {_LONGEST} bytes"
        return ErrorData(code=INVALID_REQUEST, message=f"too large: {what}")
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if "recursion" in str(error).lower() else "not a request"
        return ErrorData(code=INVALID_REQUEST, message=f"{why}: {what}")
    if isinstance(message, JSONRPCNotification) and "id" in _fields_of(text):
        return ErrorData(
            code=INVALID_REQUEST, message="not a request: its id is neither a text nor a number"
        )
    return None


def _take_stdin() -> BinaryIO:
    """Return the client's end of stdin, which no child and no tool can read from."""
    taken = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # A thread may still wait on it when the server ends: it must not become another file.
    return os.fdopen(taken, "rb", closefd=False)


def _tool(name: str, function: Callable[..., Any]) -> Tool:
    hints = ToolAnnotations(
        read_only_hint=name in _READS,
        destructive_hint=name == "write_artifact",
        open_world_hint=False,
    )
    text = inspect.cleandoc(function.__doc__ or "")
    call = _wrap_as_tool(name, function)
    tool = Tool.from_function(
        call, name, description=text, annotations=hints, structured_output=True
    )
    tool.parameters = described(name, tool.parameters)
    return tool


def _wrap_as_tool(name: str, function: Callable[..., ToolAnswer]) -> Callable[..., Any]:
    """Return the function as the library calls it: a model reads the words alone, once, and whoever
    asks by program the structure, in which yes or no has the tool's own name.
    """
    yes = ANSWERS.get(name, "")

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> CallToolResult:
        try:
            answer = function(*arguments, **named)
        except ToolRefusedError as refusal:
            raise ToolError(str(refusal)) from None
        is_no = yes and not answer.is_yes
        words = f"{yes}: false\n{answer.text}" if is_no else answer.text
        fields = asdict(answer)
        fields_of_yes = {yes: fields.pop("is_yes")} if yes else {}
        fields.pop("is_yes", None)
        return CallToolResult(
            content=[TextContent(type="text", text=words)],
            structured_content=fields_of_yes | fields,
        )

    signature = inspect.signature(function, eval_str=True)
    call.__signature__ = signature.replace(return_annotation=_shape(yes))  # type: ignore[attr-defined]
    return call


def _shape(yes: str) -> type:
    """Return what a tool answers, whose yes or no is called so; empty for none."""
    hints = get_type_hints(ToolAnswer)
    del hints["is_yes"]
    return make_dataclass("ToolAnswer", [*([(yes, bool)] if yes else []), *hints.items()])


def _read(function: Callable[[], str]) -> str:
    try:
        return function()
    except ToolRefusedError as refusal:
        raise ResourceError(str(refusal)) from None


def _written(function: Callable[[], Any]) -> str:
    return _read(lambda: json.dumps(visible(to_json(function())), ensure_ascii=False, indent=1))


def _subject(event: Mapping[str, Any]) -> str:
    subject = str(event.get("subject", ""))
    return f"{LIST}/{subject}" if "/" in subject else BOARD
