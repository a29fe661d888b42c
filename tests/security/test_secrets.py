"""A credential in an artifact is held back, is stored nowhere, and is shown nowhere. See
docs/dev/faults.md#f59.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.artifacts import Artifact, artifact
from tests.e2e.repo import Repo
from tests.security.asking import ask
from tests.security.verbs import questions

FILES = sorted((Path(__file__).parents[2] / "fixtures/secrets").iterdir())
TEXT = "Sessions outlive the 15 minute access token without a new login"


def test_forty_planted_credentials_are_all_held_and_none_of_them_is_stored_or_shown(
    repo: Repo,
) -> None:
    secrets = ["".join(json.loads(path.read_text())["parts"]) for path in FILES]
    clean = [artifact("plan", number) for number in range(len(secrets))]
    leaking = [with_secret(one, secret) for one, secret in zip(clean, secrets, strict=True)]
    repo.write(*leaking)
    (_, shown, *others) = ask(repo, questions(("run --once", "status --json", "status", "events")))
    standing = {
        one["path"]: (one["standing"], one["reason"])
        for one in json.loads(shown.out)["data"]["candidates"]
    }
    assert len(secrets) >= 40
    assert {standing.get(one.path) for one in leaking} == {("held", "secret")}
    assert len(repo.subjects()) == 1
    objects = repo.look("cat-file", "--batch-all-objects", "--batch").encode(
        errors="surrogateescape"
    )
    texts = [said.out + said.err for said in (shown, *others)] + [
        path.read_bytes() for path in own_files(repo)
    ] + [objects]  # fmt: skip
    assert [secret[:6] for secret in secrets if any(tail(secret) in text for text in texts)] == []
    repo.write(*clean)
    ask(repo, questions(("run --once",)))
    assert len(repo.subjects()) == 1 + len(clean)


def with_secret(one: Artifact, secret: str) -> Artifact:
    written = one.data.replace(TEXT.encode(), json.dumps(f"see {secret} there")[1:-1].encode())
    assert written != one.data
    return one._replace(data=written)


def tail(secret: str) -> bytes:
    """Return the part that only the credential has; of an address, what stands before the host."""
    return secret.strip().rpartition("\n")[2].partition("@")[0].encode()[-12:]


def own_files(repo: Repo) -> list[Path]:
    return [path for path in (repo.git_dir / "yolo-fs").rglob("*") if path.is_file()]
