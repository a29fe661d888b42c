"""What a play is made of: acts and scenes as rows, with what the daemon has to answer to each.

A play is a folder below `demo/plays`: `story.py` with these rows, beside it the files that its
agents write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, DEPARTMENTS
from yolo_fs.protocol.names import Dept, Role
from yolo_fs.reasons import Reason

SECRET = "@secret@"
"""Gap in a file: a made-up credential, put together when the play runs."""


class Manner(Enum):
    """How an agent's tool puts bytes into a file; each is bound to its function in `demo.agents`."""

    PLAIN = "at once"
    RENAME = "beside it, then renamed over it"
    LINES = "line by line, with the file open all the time"
    SLOW = "slowly, with a rest in the middle of a line"
    TORN = "only as far as the middle of a line"
    REST = "the rest of a file that was torn"
    REWRITE = "in place, over what is there"


# What somebody does.


@dataclass(frozen=True, slots=True)
class Slip:
    """What an agent gets wrong: the right text, of which the file has exactly one, and what it writes instead."""

    right: str
    wrong: str


@dataclass(frozen=True, slots=True)
class Write:
    """Write a file of the play into the repository."""

    path: str
    """POSIX path relative to the repository."""
    content: str
    """The file of the play, relative to its folder. `@secret@` and `@NN-MM/Tk@` in it are filled."""
    manner: Manner = Manner.PLAIN
    slip: Slip | None = None


@dataclass(frozen=True, slots=True)
class Git:
    """Run git as a person or an agent with a shell does."""

    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Write a source file and commit it alone, with git."""

    path: str
    content: str
    subject: str
    task: str = ""
    """`NN-MM/Tk` by which later files name the commit; empty when none does."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Append to a file what the integration gate finds, as the rules work it out."""

    path: str


@dataclass(frozen=True, slots=True)
class Queue:
    """Begin to wait at a gate, in a process of its own."""

    gate: str


@dataclass(frozen=True, slots=True)
class Tell:
    """Have one's say in an escalation, by a message."""

    words: tuple[str, ...]
    """What follows `yolo-fs escalate`; the message is read from stdin."""
    message: Mapping[str, object]


Deed = Write | Git | Code | Judge | Queue | Tell


# What has to come of it.


@dataclass(frozen=True, slots=True)
class Commits:
    """The daemon commits what the file now holds."""

    path: str
    subject: str


@dataclass(frozen=True, slots=True)
class CommitsEach:
    """The daemon commits each of several files alone, in whatever order it finds them."""

    commits: tuple[Commits, ...]


@dataclass(frozen=True, slots=True)
class Adds:
    """The daemon itself changes a file, and commits it."""

    path: str
    subject: str


@dataclass(frozen=True, slots=True)
class Refuses:
    """The daemon rejects the file and says why and where."""

    path: str
    reason: Reason
    line: int
    at: str


@dataclass(frozen=True, slots=True)
class Holds:
    """The daemon finds the file good, but does not commit it now."""

    path: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Waits:
    """The daemon does not judge the file yet, as `yolo-fs status` says."""

    path: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Source:
    """The actor made a commit with git, under this subject; the daemon has no part in it."""

    subject: str


@dataclass(frozen=True, slots=True)
class Stages:
    """The actor staged something; from here to the end it has to stay as it is, to the byte."""

    said: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """Nothing is to be answered."""

    said: str


@dataclass(frozen=True, slots=True)
class Says:
    """A command of yolo-fs answers so."""

    command: tuple[str, ...]
    data: Mapping[str, object]
    """JSON pointer → value, of the data that it prints."""
    said: str
    """The same in words."""
    exit_code: int = 0
    is_yes: bool = True
    """Whether the team may go on."""


@dataclass(frozen=True, slots=True)
class Keeps:
    """The daemon has written and committed a state file so."""

    path: str
    data: Mapping[str, object]
    """JSON pointer → value."""
    said: str
    """The same in words."""


@dataclass(frozen=True, slots=True)
class Agrees:
    """What the branch has and what a command says are one and the same story."""

    answers: tuple[Says | Keeps, ...]
    said: str
    """The same in words."""


@dataclass(frozen=True, slots=True)
class Sleeps:
    """Whoever waits at the gate is asleep."""


@dataclass(frozen=True, slots=True)
class Wakes:
    """Whoever waits at the gate, and slept until now, is woken because it is open."""


Question = Says | Keeps | Agrees | Sleeps | Wakes
Answer = (
    Commits | CommitsEach | Adds | Refuses | Holds | Waits | Source | Stages | Nothing | Question
)


# The play itself.


@dataclass(frozen=True, slots=True)
class Scene:
    """Somebody does something, and it is answered."""

    who: Role
    does: str
    """One plain sentence without its subject."""
    deeds: tuple[Deed, ...]
    answer: Answer
    dept: Dept = DEFAULT_DEPARTMENT
    deadline_s: float = 20.0
    """Longest wait for the answer."""
    called: str = ""
    """How whoever acts is called, where it is not the role alone; several of them do their deeds at once."""
    in_turn: bool = False
    """Whether it is one actor all the same, who does one deed after the other."""

    @property
    def actor(self) -> str:
        """The role as the tables print it, with its department where that is not the backend."""
        return self.called or f"{_PREFIX_OF[self.dept]} {self.who.label}".strip()


_PREFIX_OF = {row.name: row.prefix.rstrip("-").upper() for row in DEPARTMENTS}


@dataclass(frozen=True, slots=True)
class Act:
    """The scenes of one step of the workflow, or of several."""

    step: str
    """Key of the step in `protocol.workflow`; another name for several of them."""
    title: str
    scenes: tuple[Scene, ...]


@dataclass(frozen=True, slots=True)
class Play:
    """A whole story, from an ordinary repository to the sign-off."""

    name: str
    """As in `yolo-fs demo --play NAME`; plays of one name are played one after the other."""
    intro: str
    opening: tuple[Deed, ...]
    """What the repository is before the daemon starts."""
    acts: tuple[Act, ...]
    leaves: tuple[str, ...] = ()
    """What `git status --porcelain` says at the end: what the user left open, and nothing else."""
    folder: str = ""
    """The folder below `demo/plays` with its files, where it is not named like the play."""
    keeps_states: bool = False
    """Whether the daemon keeps state files, so that it commits them between what the actors do."""
    policy: Mapping[str, object] = field(default_factory=dict)
    """What the user's own configuration lets the daemon do."""
    shows_log: bool = True
    """Whether the history is shown at the end."""

    @property
    def scenes(self) -> Iterator[Scene]:
        """Every scene in its order."""
        return (scene for act in self.acts for scene in act.scenes)
