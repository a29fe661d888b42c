"""The section `yolo_fs` of the configuration: what the coordinator itself may do here.

A repository's own configuration is as trustworthy as its last pull, so it may only tighten. Each
field says which way that is; a value that loosens counts only when it comes from the user's own
configuration.
"""

from __future__ import annotations

from typing import Annotated, Literal

from yolo_fs.schemas.base import Count, Field, Positive, RelativePath, Text, Wire

__all__ = ["Policy"]

_FINGERPRINT = r"^[0-9a-f]{8,64}$"


class Policy(Wire):
    """What the coordinator may do in this repository, and how patient it is."""

    strict: bool = False
    """Unknown keys reject instead of warn. Tightens: true."""
    legacy: bool = False
    """Known old spellings warn instead of reject. Loosens: true."""
    commit_ignored: bool = False
    """Commit artifacts that git ignores instead of holding them. Loosens: true."""
    allow_detached: bool = False
    """Commit on a detached HEAD instead of holding. Loosens: true."""
    protected: list[Text] = Field(default_factory=list)
    """Branch names or globs on which nothing is committed. Tightens: every entry."""
    durability: Literal["fsync", "none"] = "fsync"
    """Whether a commit is on the disk before it is acknowledged. Loosens: none."""
    settle_ms: Count = 300
    """Quiet time before a file that is not provably complete is read. Tightens: longer."""
    grace_s: Count = 30
    """Time after which a last line without newline becomes a finding. Neither way: it only tells
    sooner or later."""
    rescan_s: Positive = 30
    """Time between two looks at the whole tree. Neither way: the watcher tells sooner."""
    max_file_bytes: Positive = 8 * 1024 * 1024
    """Largest artifact. Tightens: smaller."""
    max_line_bytes: Positive = 1024 * 1024
    """Longest line of an artifact. Tightens: smaller."""
    max_depth: Positive = 64
    """Deepest nesting of JSON. Tightens: smaller."""
    directive_roots: list[RelativePath] = Field(
        default_factory=lambda: ["apps/web/.local/directives"]
    )
    """Folders whose sessions may hold a `HANDOFF.md`. Loosens: every entry, yet never outside."""
    required_reading: RelativePath = "apps/web/docs/guides/component-paradigm.md"
    """What every packet must name as required reading. Neither way."""
    strict_handoffs: bool = False
    """A handoff that was not read from its `handoff.json` fails the phase, even when the agent's
text has it. Tightens: true."""
    handoff_deadline_s: Positive = 1800
    """Time in which a handoff that was delivered is to be read, one that was read to be
    acknowledged, and one that was acknowledged to be acted upon. As long as a gate waits by itself.
    Neither way: it only tells."""
    safety_net: bool = True
    """Before a command by which an agent may destroy what no commit has, such as `git reset
    --hard`, that is kept. Loosens: false."""
    agent_silent_s: Positive = 600
    """Time after which an agent that was at work, and gives no sign, counts as disappeared. Twice
    as long as a level is asked. Neither way: it only tells."""
    stall_s: Positive = 1800
    """Time after which a step stands still that has neither a new artifact nor a sign of its agent.
    As long as a gate waits by itself. Neither way: it only tells."""
    circuit_failures: Positive = 2
    """Failures in a row that open a department's circuit. Neither way: it only tells."""
    circuit_open_s: Positive = 300
    """Time after which an open circuit is half-open. Neither way: it only tells."""
    secrets_allowed: list[
        Annotated[str, Field(pattern=_FINGERPRINT, examples=["9f86d081884c7d65"])]
    ] = Field(default_factory=list)
    """Fingerprints of lines that look like a credential and are none. Loosens: every entry."""
    product_handoffs: bool = False
    """Watch, check and commit the handoffs of the product workflow, which lie outside the planning
    tree in `documents/handoffs`. Loosens: true."""
    state_files: Literal["existing", "always", "never"] = "existing"
    """Which state files the daemon keeps true and commits on each transition: those that exist,
    those of every phase, or none. Where several departments work, `existing` means `always`.
    Neither way."""
    contexts: Literal["existing", "always", "never"] = "existing"
    """Which compiled contexts the daemon keeps true: those that exist, those of every agent of the
    phase that is worked on as well, or none. `context_compiler: false` means `never`. Neither
    way."""
    hooks_hold_people: bool = False
    """Git's hooks refuse a person's commit or push as they do an agent's, instead of only warning.
    Tightens: true."""
    aliases: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Kind of artifact → what this team writes → what it means: `mission` → `obj` for a key,
    `tst=by hand` → `no_tests` for a value. `fix` and `adopt` write the one for the other; nothing
    else is accepted by it. Neither way."""
    commits_per_minute: Count = 0
    """Most commits in a minute; 0 sets no limit. Tightens: any other number."""
