"""Credentials in disguise, before a running daemon: in no object, no log, no record of ours and no output.

Each planted credential wears one of the disguises, in turn; with `YOLO_SECURITY=1` each wears all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable

from tests.artifacts.test_examine_secrets import DISGUISES
from tests.e2e.artifacts import PLANNING, Artifact, artifact
from tests.e2e.daemon import Daemon, until
from tests.e2e.repo import Repo
from tests.security.asking import ask
from tests.security.test_secrets import FILES, own_files, tail
from tests.security.verbs import questions

SECRETS = ["".join(json.loads(path.read_text())["parts"]) for path in FILES]
SHOWN = ("status --json", "resume", "events", "validate --json")


def planted() -> list[tuple[str, str]]:
    """Return (secret, text that means it) of each trial."""
    names = list(DISGUISES)
    tried = names if os.environ.get("YOLO_SECURITY") else []
    return [
        (secret, DISGUISES[name](secret).replace("\n", " "))
        for number, secret in enumerate(SECRETS)
        for name in tried or (names[number % len(names)],)
    ]


def with_line(one: Artifact, text: str) -> Artifact:
    return one._replace(data=one.data + text.encode() + b"\n")


def test_no_disguise_brings_a_credential_into_git_or_before_anybodys_eyes(
    repo: Repo, start: Callable[[Repo], Daemon]
) -> None:
    trials = planted()
    assert len({secret for secret, _ in trials}) >= 40 and len(DISGUISES) >= 12
    daemon = start(repo)
    leaking = [with_line(artifact("plan", number), text) for number, (_, text) in enumerate(trials)]
    marker = artifact("critique", 0)
    repo.write(*leaking, marker)
    daemon.wait_committed([marker])
    judged = {"held", "rejected"}
    until(lambda: {*standings(repo)} <= judged, "a verdict on every file", 20)
    assert len(standings(repo)) == len(trials)
    shown = ask(repo, questions(SHOWN))

    texts = [said.out + said.err for said in shown]
    texts += [path.read_bytes() for path in own_files(repo)]
    texts.append(stored(repo))
    for secret, text in trials:
        for part in (tail(secret), text.encode()[-24:]):
            assert not any(part in one for one in texts), secret[:6]
    committed = repo.look("ls-tree", "-r", "--name-only", "HEAD", f"{PLANNING}/phases").splitlines()
    assert committed == [marker.path]


def standings(repo: Repo) -> list[str]:
    """Return how the files of the phases stand that are not committed."""
    candidates = repo.status()["candidates"]
    return [one["standing"] for one in candidates if one["path"].endswith(".plan.jsonl")]


def stored(repo: Repo) -> bytes:
    """Return every object that git has, whichever way it can be reached."""
    objects = ["cat-file", "--batch", "--batch-all-objects", "--buffer"]
    done = subprocess.run(["git", *objects], cwd=repo.root, capture_output=True, check=True)
    return done.stdout
