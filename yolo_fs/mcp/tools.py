"""The eleven tools: each asks what a command of ours answers, for an agent in any host and any
language.

The text below each name is what the model reads, so it teaches the protocol as well as the tool.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from yolo_fs.authority.actors import check_agent
from yolo_fs.cli.reply import Invocation, Reply, reply_of, text_of
from yolo_fs.core.json_form import to_json, visible
from yolo_fs.core.reasons import (
    Finding,
    Level,
    Reason,
    YoloError,
    counted,
    errors,
    safe,
    safe_lines,
)
from yolo_fs.git.repository import Repository
from yolo_fs.mcp.refusal import ToolRefusedError
from yolo_fs.mcp.spelling import name_tools
from yolo_fs.protocol.roster import bare_name

if TYPE_CHECKING:  # a host waits for us at its start: what a tool needs is imported when it is used
    from yolo_fs.checking.validate import CheckedFile, Validator
    from yolo_fs.mcp.writing import ArtifactWriter, Caller

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True)
class ToolFault:
    """One thing that is wrong, and where."""

    level: str
    """error or warning."""
    reason: str
    """A stable name, such as missing_key."""
    path: str
    line: int
    at: str
    """JSON Pointer of the value within its line."""
    text: str
    """The whole sentence: what was found, what is expected, what to do next."""


@dataclass(frozen=True)  # the library takes the descriptors of slots for defaults
class ToolAnswer:
    """What each tool answers."""

    is_yes: bool
    """Whether the answer is yes. `ANSWERS` has what it is called for a tool."""
    text: str
    """The answer in words."""
    faults: list[ToolFault]
    data: dict[str, Any]
    """The same as the command's --json prints."""


def with_errors_as_text(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Turn every error that a caller can mend into one text."""

    @functools.wraps(function)
    def call(*arguments: _P.args, **named: _P.kwargs) -> _R:
        try:
            return function(*arguments, **named)
        except YoloError as error:
            hint = f"\nNext: {safe(error.hint, 500)}" if error.hint else ""
            why = f"{error.reason.value}: {safe(error.message, 900)}{hint}"
            raise ToolRefusedError(name_tools(why)) from None
        except (ValueError, RecursionError) as error:  # a NUL or a lone surrogate in a text
            raise ToolRefusedError(f"{Reason.BAD_NAME.value}: {safe(str(error), 300)}") from None
        except ToolRefusedError as refusal:
            raise ToolRefusedError(name_tools(str(refusal))) from None
        except Exception as defect:  # the library would tell its name alone
            what = (
                f"{Reason.INTERNAL_ERROR.value}: {type(defect).__name__}: {safe(str(defect), 300)}"
            )
            raise ToolRefusedError(
                f"{what}\nNext: call again; 'yolo-fs doctor' may show more."
            ) from defect

    return call


class Tools:
    """What an agent can ask and do in one repository."""

    def __init__(self, start: str, agent: str = ""):
        """Work in the root of a repository; `agent`: who every caller is, such as `yolo-dev`."""
        self.start = start
        self._agent = agent
        self._asked = Invocation(start, as_json=True, quiet=True, verbose=False)

    def move_to(self, start: str) -> None:
        """Work in the root of another repository from now on."""
        self.start = start
        self._asked = self._asked._replace(start=start)

    @with_errors_as_text
    def team_status(self, agent: str = "") -> ToolAnswer:
        """Where the team stands and who does what next. Call this first, and again when you
        lost the thread.

        agent: your role, such as dev, fe-lead or critic: your own turn is then named first.
        Everything is computed from files and git, so it is true after a crash, a compaction or
        a change of session. It also names the agents that a run has at work now.
        """
        from yolo_fs.company.overview import at_work_section
        from yolo_fs.phase.report import BUDGET, Audience, as_data, as_text, cut
        from yolo_fs.protocol.roster import department_said
        from yolo_fs.reports.resume import resume

        name = bare_name(self._resolve_asker(agent))
        with Repository(self.start) as repository:  # who asks is told where there is none
            company = at_work_section(repository)
        brief = resume(self.start, Audience(name, department_said(name)))
        brief = cut((*brief, company) if company else brief, BUDGET, as_text)
        return _answer(True, as_text(brief), data=dict(as_data(brief)))

    @with_errors_as_text
    def inbox(self) -> ToolAnswer:
        """What waits for the user and for nobody else: questions, approvals, decisions, conflicts,
        credentials in files, what a run has given up. The most urgent comes first.

        Each item has the command that settles it, which a person runs: tell your user, and do
        not decide in their place. empty is true when nothing waits.
        """
        return self._reply_as_command("inbox.inbox")

    @with_errors_as_text
    def whose_turn(self, phase: str = "") -> ToolAnswer:
        """Whose turn it is in a phase and in each department, what that step reads, and what it
        still lacks.

        A step is complete when its artifact is committed, not when somebody says so. Where a
        tool is named, it carries the step out. A command of `yolo-fs` is run by a person.
        phase: its number, such as 1; empty for the one that is worked on.
        """
        answer = self._reply_as_command("workflow.next_", phase=phase)
        turn = answer.data.get("next") or {}
        command = str(turn.get("example", ""))
        if not command:
            return answer
        printed = self._reply_as_command("schema.example", kind=command.rpartition(" ")[2])
        text = visible(str(printed.data["text"]))
        shown = text if len(text) <= _LONGEST_EXAMPLE else text[: text.find("\n", 0) + 1]
        return replace(answer, text=f"{answer.text}\nA valid one:\n{shown}")

    @with_errors_as_text
    def validate_artifact(
        self, path: str = "", text: str = "", kind: str = "", agent: str = ""
    ) -> ToolAnswer:
        """Check an artifact, handoff or message before anybody relies on it. Nothing is written.

        path alone: the file as it is. path and text: the file as if it had that text. text
        alone: a message, or what kind says, such as artifact/plan/task (the resource
        yolo-fs://protocol/kinds lists them). A JSONL artifact is one compact JSON object per
        line, each line ended, short keys. valid is false when there is an error; each fault says
        line, value, what is expected and what to do.
        """
        from yolo_fs.artifacts.misnamed import kind_called
        from yolo_fs.checking.validate import Validator

        with closing(Validator(self.start, kind_called(kind) if kind else None)) as validator:
            files = self._checked(validator, path, text, agent)
            return _answer_from_files(validator, files, of_tree=not path, is_draft=bool(text))

    @with_errors_as_text
    def append_record(self, path: str, record: dict[str, Any], agent: str = "") -> ToolAnswer:
        """Add one record to a JSONL artifact: checked first, then written as one whole line, so
        nothing is ever torn.

        path: such as .yolo-planning/phases/01-auth/critique.jsonl. record: the object of the
        new line. Several agents may append to one file at once. Refused with every fault of the
        new line; nothing is written then. The daemon commits the file once it is valid as a
        whole; faults that only further lines can mend are told, not refused.
        """
        with self._writer(agent) as writer:
            line, left = writer.append(path, record)
            then = writer.committed_by(left)
        return _answer(True, f"{safe(path)}: line {line} written; {then}", left, {"line": line})

    @with_errors_as_text
    def write_artifact(self, path: str, text: str, agent: str = "") -> ToolAnswer:
        """Write a whole artifact: refused with every fault, or written at once and completely.

        path: one of the protocol's artifacts below .yolo-planning/. Use it for plans, TOON and
        Markdown artifacts and to correct lines; use append_record for one more record. Other files
        are written with your host's own tools.
        """
        with self._writer(agent) as writer:
            is_changed, left = writer.write(path, text)
            then = writer.committed_by(left)
        done = f"written; {then}" if is_changed else "it has this content already: nothing changes"
        return _answer(True, f"{safe(path)}: {done}", left)

    @with_errors_as_text
    def check_permission(
        self,
        action: Literal["read", "write", "decide", "use", "contact", "escalate"],
        subject: str,
        agent: str = "",
    ) -> ToolAnswer:
        """Whether you may do something, by which rule, and whom to ask instead. Ask before you
        act outside your lane.

        subject: a path for read and write, a topic for decide, a tool for use, a role for
        contact, an occasion or role for escalate. agent: your role.
        """
        return self._reply_as_command(
            "may.may",
            words=(self._named(agent), action, subject), agent="", dept=None, plan="",
            work=None,
        )  # fmt: skip

    @with_errors_as_text
    def gate_status(self, name: str = "", phase: str = "", wait_s: float = 0.0) -> ToolAnswer:
        """Whether a gate between departments is open, and each piece of evidence that it lacks.

        name: such as ux-complete or all-depts; empty for all gates of the phase. A gate opens
        by committed evidence alone, never by a file made by hand. wait_s: wait so long for it
        to open, at most 300 seconds. open is false while any gate that was asked about is closed.
        """
        if not name:
            listed = self._reply_as_command("gate.list_", phase=phase)
            return replace(listed, is_yes=all(gate["open"] for gate in listed.data["gates"]))
        if wait_s > 0:
            limit = min(wait_s, 300.0)
            return self._reply_as_command("gate.wait", names=(name,), phase=phase, timeout=limit)
        return self._reply_as_command("gate.why", name=name, phase=phase)

    @with_errors_as_text
    def handoff(
        self,
        action: Literal["check", "emit"],
        path: str = "",
        fields: dict[str, str] | None = None,
        agent: str = "",
    ) -> ToolAnswer:
        """Take work over, or hand it over. A packet is accepted whole or not at all; until then
        you edit nothing.

        check: the HANDOFF.md that was written last, or the one at path. emit: writes one;
        fields are from_role, to_role, trigger, objective, blocking_rule, and optionally
        session_id, task_file, directive_branch, required_reading.
        """
        if action == "emit":
            return self._reply_as_command("handoff.emit_", **{**_NO_FIELDS, **_known(fields or {})})
        from yolo_fs.protocol.handoffs import DirectiveRole

        receiver = bare_name(self._resolve_asker(agent))
        known = receiver if receiver in set(DirectiveRole) else None
        place = self.caller(agent).readable(path) if path else None
        return self._reply_as_command("handoff.check", path=place, receiver=known, because=None)

    @with_errors_as_text
    def escalate(
        self,
        action: Literal["list", "open", "raise", "resolve"],
        id: str = "",
        task: str = "",
        reason: str = "",
        evidence: list[str] | None = None,
        recommendation: str = "",
        options: list[str] | None = None,
        decision: str = "",
        instructions: list[str] | None = None,
        agent: str = "",
    ) -> ToolAnswer:
        """Say that a task is blocked, hand the question up one level, or bring a decision down
        again.

        open: task (NN-MM/Tk), reason, evidence, recommendation. raise: id (ESC-NN-MM-Tk),
        reason, evidence, recommendation; an Architect gives 2 or 3 options. resolve: id,
        decision, instructions. Each level speaks only to the one above and below; silence never
        decides. Do not work around a blocker: report it.
        """
        who = self._resolve_asker(agent) if action == "list" else self._named(agent)
        given = {"agent": bare_name(who), "reason": reason}
        seen = {"evidence": tuple(evidence or ()), "recommendation": recommendation}
        way = {"message_path": None, "to": ""}
        match action:
            case "list":
                return self._reply_as_command("escalate.list_", phase="")
            case "open":
                more = {"task": task, "boundary": "", "severity": None, "fails": False}
                return self._reply_as_command("escalate.open_", **given, **seen, **way, **more)
            case "raise":
                choices = {"name": id, "options": tuple(options or ()), "boundary": ""}
                return self._reply_as_command("escalate.raise_", **given, **seen, **way, **choices)
            case "resolve":
                items = {"name": id, "instructions": tuple(instructions or ()), "shown_by": ""}
                return self._reply_as_command(
                    "escalate.resolve", **given, **way, **items, decision=decision
                )

    @with_errors_as_text
    def task(
        self,
        action: Literal["claims", "claim", "release", "summary", "assign", "sign-off"],
        task: str = "",
        files: list[str] | None = None,
        reason: str = "",
        phase: str = "",
        agent: str = "",
    ) -> ToolAnswer:
        """Claim a task so that no two agents change one file at once, give it back, sum up what
        was done, have a task done again, or sign a phase off.

        claim: task (NN-MM/Tk) and agent, an instance such as dev-1; done is false, with the
        holder, while another has one of its files. release: task, or all of yours. summary:
        what plans and departments come to. A task is done when a commit names it: `feat(01-02):
        T3 what was done`. assign: a Lead has a task done again after a FAIL, with a reason.
        sign-off: the Lead's last step; commits state.json and ROADMAP.md, or
        names what is missing. phase: its number; empty for the one that is worked on.
        """
        who = self._named(agent) if action in _NAMED else ""
        match action:
            case "claims":
                return self._reply_as_command("task.claims_")
            case "claim":
                wanted = tuple(map(self.caller(who).writable, files or ()))
                return self._reply_as_command("task.claim", wanted=task, agent=who, files=wanted)
            case "release":
                return self._reply_as_command("task.release", wanted=task or None, agent=who)
            case "summary":
                return self._reply_as_command("task.summary", plan=None, phase="")
            case "assign" if not reason:
                raise ToolRefusedError(
                    "missing_key: reason is empty\nNext: say why the task is done again."
                )
            case "assign":
                options = {"task": task, "agent": who, "reason": reason, "phase": phase}
                return self._reply_as_command("decide.assign_", **options)
            case "sign-off":
                more = {"number": phase, "agent": who, "dry_run": False}
                return self._reply_as_command("phase.sign_off", **more)

    def _resolve_asker(self, agent: str) -> str:
        """Return who asks: as the server was started, else as the caller says."""
        bare = bare_name(self._agent)
        if bare and agent and bare_name(agent) != bare:
            raise ToolRefusedError(
                f"out_of_lane: this server speaks for {safe(self._agent)} alone, not for "
                f"{safe(agent)}\nNext: leave `agent` out."
            )
        return self._agent or agent

    def _named(self, agent: str) -> str:
        who = self._resolve_asker(agent)
        if not who:
            raise ToolRefusedError(
                "missing_key: agent is empty\nNext: say who you are, such as dev-1."
            )
        return who

    def _checked(
        self, validator: Validator, path: str, text: str, agent: str
    ) -> Iterable[CheckedFile]:
        data = text.encode()
        if not path and text:
            return [validator.text(data)]
        caller = self.caller(agent)
        if not path:
            return caller.of_own(validator.tree())
        place = caller.readable(path)
        if not text:
            return caller.of_own(validator.paths((place,)))
        return [validator.again(os.path.join(self.start, place), place, data)]

    def caller(self, agent: str) -> Caller:
        """Return whoever calls, and what they may touch. `agent`: as the caller says.

        Raises:
            YoloError: UNKNOWN_NAME.
            ToolRefusedError: the server speaks for another agent.
        """
        from yolo_fs.mcp.writing import Caller

        who = self._resolve_asker(agent)
        check_agent(who)
        return Caller(self.start, who)

    def _writer(self, agent: str) -> ArtifactWriter:
        from yolo_fs.mcp.writing import ArtifactWriter

        who = self._resolve_asker(agent)
        check_agent(who)
        return ArtifactWriter(self.start, who)

    def _reply_as_command(self, command: str, **options: Any) -> ToolAnswer:
        return _answer_from_reply(self.reply(command, **options))

    def reply(self, command: str, **options: Any) -> Reply:
        """Reply as a command of ours does; `command`: its module and function, `gate.why`."""
        module, _, name = command.partition(".")
        verb = getattr(importlib.import_module(f"yolo_fs.cli.{module}"), name)
        return reply_of(verb, self._asked, **options)


_LONGEST_EXAMPLE = 1_500
"""Characters of an example that a turn is told with; of a longer one its first line."""
_NAMED = ("claim", "release", "assign", "sign-off")
"""Actions of `task` that an agent does in its own name."""
_NO_FIELDS = dict.fromkeys(
    ("from_role", "to_role", "trigger", "objective", "blocking_rule", "session_id", "task_file",
     "directive_branch", "required_reading"),
)  # fmt: skip


def _known(fields: Mapping[str, str]) -> Mapping[str, str]:
    for name in fields:
        if name not in _NO_FIELDS:
            raise ToolRefusedError(
                f"{Reason.UNKNOWN_KEY.value}: a packet has no field {safe(name, 80)}"
                f"\nNext: leave it out; the fields are {', '.join(_NO_FIELDS)}."
            )
    return fields


def _answer_from_reply(reply: Reply) -> ToolAnswer:
    data = to_json(reply.data)
    value = data if isinstance(data, dict) else {"items": data}
    text = text_of(reply) or ("no" if reply.exit_code else "yes")
    return _answer(not reply.exit_code, text, reply.findings, value)


def _answer_from_files(
    validator: Validator, files: Iterable[CheckedFile], *, of_tree: bool, is_draft: bool
) -> ToolAnswer:
    """`is_draft`: the text is no file yet, and no command can mend it."""
    from yolo_fs.checking.fix import fixable_of

    checked_files = list(files)
    findings = [finding for file in checked_files for finding in file.findings]
    wrong = len(errors(findings))
    warned = counted(len(findings) - wrong, "warning")
    text = f"{len(checked_files)} checked, {counted(wrong, 'error')}, {warned}"
    mends = fixable_of(validator, checked_files, of_tree=of_tree)
    lines = [text]
    lines += [f"{each.path}:{each.line} corrected: {each.text}" for each in mends.lines]
    lines += filter(None, [mends.by_hand if is_draft else mends.sentence])
    data = {"checked": len(checked_files), "fixable": mends.fixable}
    return _answer(not wrong, "\n".join(lines), findings, data)


def _answer(
    is_yes: bool, text: str, findings: Iterable[Finding] = (), data: dict[str, Any] | None = None
) -> ToolAnswer:
    faults = [_fault(finding) for finding in findings]
    lines = "".join(f"\n- {fault.text}" for fault in faults)
    return ToolAnswer(is_yes, visible(name_tools(f"{text}{lines}")), faults, visible(data or {}))


def _fault(finding: Finding) -> ToolFault:
    level = "warning" if finding.level is Level.WARNING else "error"
    path, at, text = map(safe_lines, (finding.path, finding.at, str(finding)))
    return ToolFault(level, finding.reason.value, path, finding.line, at, name_tools(text))
