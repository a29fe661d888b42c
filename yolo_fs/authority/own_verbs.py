"""Who may run a verb of ours that is not everybody's: the same for the hooks of hosts, which see it
typed, and for the verb itself. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from yolo_fs.authority.actors import Actor
from yolo_fs.protocol.departments import DEPARTMENTS, Role
from yolo_fs.protocol.verbs import OwnVerb, Whose


class VerbRefusal(NamedTuple):
    """Why an agent may not run a verb."""

    rule: str
    instead: str
    """What to do instead, as an order."""


def refuse_verb(
    actor: Actor | None, what: str, verb: OwnVerb, department: str = ""
) -> VerbRefusal | None:
    """Return why an agent may not run a verb; None if it may.

    `actor`: None for an agent that is none of the company, such as the executor of a directive.
    `what`: the verb, for messages, already escaped. `department`: the one that it names.
    """
    if verb.whose is Whose.ANYBODY or (actor and actor.role is Role.USER):
        return None
    if verb.whose is Whose.PERSON:
        rule = f"Only a person may run {what}: it decides what agents may not."
        return VerbRefusal(rule, verb.instead)
    if actor is None:
        return None
    if verb.whose is Whose.ROLE:
        if actor.role in verb.roles:
            return None
        lead = actor.peer(verb.roles[0]).name
        return VerbRefusal(f"{what} is not for your role.", f"ask {lead}.")
    row = next((row for row in DEPARTMENTS if row.name == department.lower()), None)
    may_speak = actor.role in verb.roles if actor.department is None else False
    if row is None or may_speak or row.name == actor.department:
        return None
    rule = f"{what} acts for the department {row.name}, which is not yours."
    return VerbRefusal(rule, f"ask {row.lead}.")
