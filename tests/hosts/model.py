"""A scripted model on loopback: it speaks the two protocols by which hosts ask theirs, and says what a play tells it to.

It keeps no conversation. `PLAY:name` in a message of the user names the script, and the answers that follow it count.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MARK = re.compile(r"PLAY:([a-z0-9-]+)(?:@([0-9]+))?")
_COMPACTIONS = ("CRITICAL: Respond with TEXT ONLY", "CONTEXT CHECKPOINT COMPACTION")
_BRIEF = re.compile(r"# .+\n\nYou are yolo-[a-z-]+\. Phase ")
_AGENT = re.compile(r'"agent_id":"([^"]+)"')
_FEW_TOKENS, _MANY_TOKENS = 1_000, 990_000


@dataclass(frozen=True)
class Say:
    """The model says something, and ends its turn."""

    text: str = "Done."


@dataclass(frozen=True)
class Shell:
    """The model runs a command."""

    command: str
    is_long: bool = False
    """The host is told that its context is nearly full."""


@dataclass(frozen=True)
class Write:
    """The model makes a file, whose path is relative to where the host was started."""

    path: str
    text: str


@dataclass(frozen=True)
class Tool:
    """The model calls a tool by the host's own name."""

    name: str
    given: Mapping[str, Any]
    space: str = ""
    """The namespace of the tool, where the host has such."""


Step = Say | Shell | Write | Tool
Script = Sequence[Step | Callable[[str], Step]]
"""Steps, or what makes one of what the host sent after the step before."""


@dataclass(frozen=True)
class Request:
    """What a host has asked the model."""

    play: str
    turn: int
    """How many answers of the model the conversation has since the play began."""
    text: str
    """Everything that the host sent."""
    latest: str
    """What the host sent after the model's last answer."""
    tools: tuple[str, ...] = ()
    """Names of the tools that the host offered."""


class Model:
    """Serves both protocols on a port of loopback, until it is closed."""

    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}
        self._chosen: dict[tuple[str, int], Step] = {}
        self.player: Callable[[str, str], Sequence[Step]] | None = None
        """Brief of an act and name of its host → what the model does; None where only plays are known."""
        self.limits = 0
        """Requests that are still to be refused for their rate."""
        self.is_key_refused = False
        """Whether each request is refused for its key."""
        self.requests: list[Request] = []
        self.strangers: list[str] = []
        """Paths that a host asked for, and that we do not know."""
        model = self

        class Handler(_Handler):
            asked = model

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def spoken(self, step: Step, text: str) -> Step:
        """Return a step with what only the host knew when the script was written."""
        agent = _AGENT.search(text)
        if agent is None or not isinstance(step, Tool):
            return step
        given = json.loads(json.dumps(step.given).replace("AGENT", agent[1]))
        return Tool(step.name, given, step.space)

    def of(self, play: str) -> list[Request]:
        """Return the requests of a play, in order."""
        return [each for each in list(self.requests) if each.play == play]

    def answer(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        host: str = "claude",
    ) -> Step:
        """Return what the model does next in a conversation, in which it is offered some tools."""
        marked, play, turn = -1, "", 0
        for at, message in enumerate(messages if self.player else ()):
            said = "\n".join(_texts(message))
            if message.get("role") == "user" and (brief := _BRIEF.search(said)):
                marked, play = at, said[brief.start() :]
        is_act = bool(play)
        for at, message in enumerate(messages if not is_act else ()):
            if message.get("role") in ("user", "agent") and (
                found := MARK.findall("\n".join(_texts(message)))
            ):
                marked, (play, begun) = at, found[-1]
                turn = int(begun or 0)
        since = messages[marked + 1 :]
        answers = [at for at, message in enumerate(since) if message.get("role") == "assistant"]
        runs = [at for at in answers if at - 1 not in answers]
        turn += len(runs)
        latest = since[answers[-1] + 1 :] if answers else messages
        text, last = "\n".join(_texts(messages)), "\n".join(_texts(latest))
        if any(words in last for words in _COMPACTIONS):
            self.requests.append(Request(f"{play}:compaction", turn, text, last))
            return Say(f"So far all went well. PLAY:{play}@{turn}")
        if self.player and is_act and (turn == 0 or play not in self.scripts):
            self.scripts[play] = self.player(play, host)
        names = tuple(str(each.get("name")) for each in tools)
        self.requests.append(Request(play, turn, text, last, names))
        script = self.scripts.get(play, ())
        if turn >= len(script):
            return Say("There is nothing left to do.")
        step = self._chosen.get((play, turn)) or script[turn]  # a host may ask twice
        if callable(step):
            step = self._chosen[play, turn] = step(last)
        return self.spoken(step, last)


class _Handler(BaseHTTPRequestHandler):
    asked: Model
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._unknown()

    def do_HEAD(self) -> None:
        self._unknown()

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        if self.asked.limits > 0:
            self.asked.limits -= 1
            error = {"type": "rate_limit_error", "message": "429 Too Many Requests"}
            self._json({"type": "error", "error": error}, 429)
            return
        if self.asked.is_key_refused:
            error = {"type": "authentication_error", "message": "the key was withdrawn"}
            self._json({"type": "error", "error": error}, 401)
            return
        match self.path.partition("?")[0]:
            case "/v1/messages":
                self._stream(_as_messages(self._messages(said)))
            case "/v1/messages/count_tokens":
                self._json({"input_tokens": _FEW_TOKENS})
            case "/v1/responses":
                self._stream(_as_responses(self._responses(said)))
            case _:
                self._unknown()

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _messages(self, said: Mapping[str, Any]) -> Step:
        if not said.get("tools"):  # a title, or a check of the line
            return Say("A play")
        system = {"role": "system", "content": said.get("system")}
        return self.asked.answer([system, *said["messages"]], said["tools"])

    def _responses(self, said: Mapping[str, Any]) -> Step:
        return self.asked.answer(
            [{"role": "system", "content": said.get("instructions")}, *map(_turned, said["input"])],
            host="codex",
        )

    def _stream(self, events: Iterator[Mapping[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        self.close_connection = True

    def _json(self, value: Mapping[str, Any], status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _unknown(self) -> None:
        self.asked.strangers.append(f"{self.command} {self.path}")
        self._json({"error": {"type": "not_found_error", "message": "no such thing"}}, 404)


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts(each)


def _turned(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an item of the second protocol with the role that the first would give it."""
    if "role" in item:
        return item
    kind = str(item.get("type", ""))
    if kind == "agent_message":
        return {**item, "role": "agent"}
    return {**item, "role": "tool" if kind.endswith("_output") else "assistant"}


def _as_messages(step: Step) -> Iterator[Mapping[str, Any]]:
    """Yield the events by which Anthropic's Messages API streams an answer."""
    used = _MANY_TOKENS if isinstance(step, Shell) and step.is_long else _FEW_TOKENS
    message = {"id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [],
               "stop_reason": None, "stop_sequence": None}  # fmt: skip
    yield {
        "type": "message_start",
        "message": {**message, "usage": {"input_tokens": used, "output_tokens": 1}},
    }
    if isinstance(step, Say):
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": step.text}
    else:
        name, given = _claude_tool(step)
        block = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "end_turn" if isinstance(step, Say) else "tool_use"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 20},
    }
    yield {"type": "message_stop"}


def _claude_tool(step: Shell | Write | Tool) -> tuple[str, Mapping[str, Any]]:
    match step:
        case Shell(command, _):
            return "Bash", {"command": command, "description": "A step of the play"}
        case Write(path, text):
            return "Write", {"file_path": path, "content": text}
        case Tool(name, given):
            return name, given


def _as_responses(step: Step) -> Iterator[Mapping[str, Any]]:
    """Yield the events by which OpenAI's Responses API streams an answer."""
    used = _MANY_TOKENS if isinstance(step, Shell) and step.is_long else _FEW_TOKENS
    yield {"type": "response.created", "response": {"id": "resp_1"}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": _codex_item(step)}
    usage = {"input_tokens": used, "input_tokens_details": None, "output_tokens": 20,
             "output_tokens_details": None, "total_tokens": used + 20}  # fmt: skip
    yield {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}}


def _codex_item(step: Step) -> Mapping[str, Any]:
    call = {"type": "function_call", "call_id": f"call_{uuid.uuid4().hex}"}
    match step:
        case Say(text):
            content = [{"type": "output_text", "text": text}]
            return {
                "type": "message",
                "role": "assistant",
                "id": f"msg_{uuid.uuid4().hex}",
                "content": content,
            }
        case Shell(command, _):
            return {**call, "name": "exec_command", "arguments": json.dumps({"cmd": command})}
        case Write(path, text):
            added = "".join(f"+{line}\n" for line in text.splitlines())
            patch = f"*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch"
            return {**call, "type": "custom_tool_call", "name": "apply_patch", "input": patch}
        case Tool(name, given, space):
            named = {"name": name, **({"namespace": space} if space else {})}
            return {**call, **named, "arguments": json.dumps(given)}
