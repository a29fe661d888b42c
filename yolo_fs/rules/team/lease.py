"""Who may publish the artifacts of a department: a file on the team's own branch says so. Pure.

The branch moves by fast-forward alone, so whoever publishes on a commit has read the leases of
exactly that commit: one that was taken meanwhile makes the push fail as a whole.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from yolo_fs.rules.artifacts.verdicts import Place

FOLDER = ".yolo-team/leases"
TTL_S = 60
"""Without a sign of life for so many seconds, a holder may be followed by another."""
LONGEST_TTL_S = 3600
_NOBODY_KNOWN = "?"


@dataclass(frozen=True, slots=True)
class TeamLease:
    """The lease of one department."""

    dept: str
    holder: str
    """Clone that holds it; empty when it is free."""
    epoch: int
    """Rises with each change of hands."""
    ttl_s: int = TTL_S
    lent_by: str = ""
    """Clone to which it goes back: its holder took it by itself while that one was silent."""

    @property
    def as_bytes(self) -> bytes:
        """The content of its file."""
        return (json.dumps(asdict(self), sort_keys=True) + "\n").encode()

    def may_publish(self, clone: str) -> bool:
        """Return whether a clone may publish the department's artifacts."""
        return self.holder in ("", clone)

    def passed_to(self, clone: str) -> TeamLease:
        """Return the lease in the hands of another clone; nobody's when that is empty."""
        return TeamLease(self.dept, clone, self.epoch + 1, self.ttl_s)

    def lent_to(self, clone: str) -> TeamLease:
        """Return the lease in the hands of a clone that follows its silent holder."""
        return replace(self.passed_to(clone), lent_by=self.lent_by or self.holder)


def path_of(dept: str) -> str:
    """Return where the lease of a department lies on the team's branch."""
    return f"{FOLDER}/{dept}.json"


def read_lease(dept: str, data: bytes | None) -> TeamLease:
    """Return a department's lease, given its file. A file that is no lease is held by nobody
    known.
    """
    if data is None:
        return TeamLease(dept, "", 0)
    try:
        value = json.loads(data)
        lent_by = value.get("lent_by", "")
        found = TeamLease(dept, value["holder"], value["epoch"], value["ttl_s"], lent_by)
    except (ValueError, KeyError, TypeError, AttributeError):
        return TeamLease(dept, _NOBODY_KNOWN, 0)
    is_sound = (
        isinstance(found.holder, str)
        and isinstance(found.lent_by, str)
        and type(found.epoch) is int
        and type(found.ttl_s) is int
        and 0 < found.ttl_s <= LONGEST_TTL_S
    )
    return found if is_sound else TeamLease(dept, _NOBODY_KNOWN, 0)


def department_of(place: Place) -> str:
    """Return the department whose lease an artifact needs; empty for what all departments share."""
    is_of_department = "{dept}" in place.artifact.file or place.artifact.made_by is not None
    return str(place.department) if is_of_department else ""
