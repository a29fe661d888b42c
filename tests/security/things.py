"""Hostile things, in groups that do not hide each other: what somebody who made or pushed a repository puts there.

Each can show that it does harm to whoever handles it as stock git, a shell or plain Python would.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.repo import Repo
from tests.security.canaries import CANARIES, SILENT_HOOKS, Cage, by_worktree_config, plant
from tests.security.doors import PHASE, PLANNING, TASK
from tests.security.place import ArtifactPath
from yolo_fs.git.obstacles import COMMITTING
from yolo_fs.git.repository import Repository
from yolo_fs.hooks.script import HINTED
from yolo_fs.protocol.departments import WORKING_NAMES
from yolo_fs.protocol.hooks import HOSTS
from yolo_fs.system.ask import SOCKET
from yolo_fs.workspace.own_files import own_files

RAW = "\x1b[2J\x1b]0;t\x07\x9b2J\u202e\u2066\u2028\r\x7f\u200b"
"""What speaks to a terminal."""


class Thing(NamedTuple):
    """One hostile thing."""

    name: str
    plant: Callable[[ArtifactPath], object]
    does_harm: Callable[[ArtifactPath], bool]
    """Whether whoever is not careful comes to harm by it; leaves traces."""


def _shell(place: ArtifactPath, command: str) -> int:
    env = {**place.repo.env, "GIT_MERGE_AUTOEDIT": "no"}
    done = subprocess.run(["sh", "-c", command], cwd=place.root, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)  # fmt: skip
    return done.returncode


# --- programs ---


def _programs() -> Iterator[Thing]:
    # a rebase, which some of them need, is refused where something is staged
    yield Thing("all canaries", lambda place: plant(place.repo, place.fired), lambda place: _shell(place, "git reset -q --hard") == 0)  # fmt: skip
    for canary in CANARIES:
        yield Thing(canary.name, lambda _: None, _singing(canary.name, canary.sing))
    for name in SILENT_HOOKS:
        yield Thing(name, lambda _: None, lambda place, name=name: os.access(place.root / f".git/hooks/{name}", os.X_OK))  # type: ignore[misc]  # fmt: skip


def _singing(name: str, command: str) -> Callable[[ArtifactPath], bool]:
    def sings(place: ArtifactPath) -> bool:
        _shell(place, command)
        return name in place.sang()

    return sings


def _of_one_work_tree() -> Iterator[Thing]:
    names = ("pre-commit", "post-commit", "post-index-change", "reference-transaction")
    yield Thing("hooks of one work tree", lambda place: by_worktree_config(place.repo, names, place.fired), lambda place: True)  # fmt: skip
    for name in names:
        yield Thing(name, lambda _: None, _singing(name, "git commit -q --allow-empty -m x"))
    yield Thing("core.fsmonitor", lambda _: None, _singing("core.fsmonitor", "git status"))


# --- a team that nobody joined ---

_PLANTED = {
    "team": "main", "clone": "x-1", "remote": "origin", "with_source": True, "lane": "nats://127.0.0.1:9",
    "place": "elsewhere:/x",
}  # fmt: skip


def _membership() -> Iterator[Thing]:
    def planted(place: ArtifactPath) -> None:
        for name in ("team.json", "team-lane.json"):
            (place.own / name).unlink(missing_ok=True)
        (place.own / "team.json").write_text(json.dumps(_PLANTED))
        (place.own / "team.json").chmod(0o600)
        place.repo.git("update-ref", "-d", "refs/yolo-fs/remote/main", ok=(0, 1))
        for config in (place.home / ".config/yolo-fs", place.home / ".local"):
            _remove(config)

    yield Thing("a membership of another machine", planted, lambda place: True)
    for key, command in (
        ("remote.origin.uploadpack", "git fetch -q origin"),
        ("remote.origin.receivepack", "git push -q origin HEAD:refs/heads/x"),
        ("core.sshCommand", "git ls-remote ssh://nowhere.invalid/x"),
    ):
        yield Thing(key, _keyed(key), _singing(key, command))


def _remove(path: Path) -> None:
    subprocess.run(["rm", "-rf", "--", str(path)], check=True)


def _keyed(key: str) -> Callable[[ArtifactPath], None]:
    def planted(place: ArtifactPath) -> None:
        place.repo.git("config", key, Cage(place.repo, place.fired).script(key))

    return planted


# --- links and pipes ---


def own_names(place: ArtifactPath) -> list[str]:
    """Return the names of all files of ours, as the code names them."""
    with Repository(str(place.root)) as repository:
        names = [each.name for each in own_files(repository, tuple(host.name for host in HOSTS))]
    return [*names, SOCKET, HINTED.partition("/")[2], COMMITTING, *FOLDERS, *_OTHERS]


FOLDERS = ("quarantine", "packing", "merged")
_OTHERS = ("git-hook", "index-draft", "compacted-")
"""Names of ours that no table has; the last one is the beginning of many."""


STATES = (
    "state.json", ".execution-state.json", "ACTIVE", ".active-agent", "HANDOFF.md", "ROADMAP.md", "ESCALATIONS.md",
    *(f"phases/01-auth/{name}" for name in (
        ".execution-state.json", ".dept-status-backend.json", ".dept-status-frontend.json", ".dept-lock-backend",
        ".phase-orchestration.json", ".escalation-state.json", ".handoff-backend-complete", ".ctx-dev.toon",
        "HANDOFF.md", "handoff.json", "escalation.jsonl", "integration-gate-result.jsonl",
    )),
)  # fmt: skip
"""What we write into the planning tree, beside artifacts."""
ARTIFACTS = tuple(f"{PHASE}/{name}" for name in ("critique.jsonl", "decisions.jsonl", "summary.jsonl", "architecture.toon", "gaps.jsonl"))  # fmt: skip
TARGETS = ("report.html", "restored", "exported", "plugin")
"""What the person names who wants something written."""
OF_HOSTS = tuple(dict.fromkeys(
    path for host in HOSTS for path in (host.settings, host.local_settings, host.servers) if path
))  # fmt: skip
OF_GIT = (
    ".gitattributes",
    ".gitignore",
    "AGENTS.md",
    "CLAUDE.md",
    ".git/info/attributes",
    ".git/info/exclude",
)


def _led_outside(place: ArtifactPath, path: Path, *, is_folder: bool = False) -> None:
    """Put a link in the place of a path; it leads to something of the user's with a name of its own."""
    target = place.outside / f"linked-{str(path.relative_to(place.base)).replace('/', '_')}"
    if is_folder:
        target.mkdir()
        (target / "kept").write_text("MY OWN DATA\n")
    else:
        target.write_text("MY OWN DATA\n")
    target.chmod(0o700 if is_folder else 0o600)
    _remove(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def _link(name: str, path: str, *, is_folder: bool = False) -> Thing:
    def leads(place: ArtifactPath) -> bool:
        link = place.root / path
        if is_folder:
            (link / "through").write_text("x")
        else:
            with open(link, "a") as file:
                file.write("x")
        return bool(place.changed())

    return Thing(
        name, lambda place: _led_outside(place, place.root / path, is_folder=is_folder), leads
    )


def _own_links(place: ArtifactPath) -> Iterator[Thing]:
    for name in own_names(place):
        if name not in (HINTED.partition("/")[2], "team.json"):
            yield _link(f"link {name}", f".git/yolo-fs/{name}", is_folder=name in FOLDERS)
            yield _link(f"link {name}.tmp", f".git/yolo-fs/{name}.tmp")


def _own_folder() -> Iterator[Thing]:
    def planted(place: ArtifactPath) -> None:
        other = place.outside / "other"
        place.own.rename(other)
        place.own.symlink_to(other)

    def leads(place: ArtifactPath) -> bool:
        (place.own / "index.db.seal").write_text("x")
        return bool(place.changed())

    yield Thing("link .git/yolo-fs", planted, leads)


def _tree_links() -> Iterator[Thing]:
    for path in (*OF_GIT, *ARTIFACTS, *TARGETS, *(f"{PLANNING}/{name}" for name in STATES)):
        yield _link(f"link {path}", path)
    for path in OF_HOSTS:
        yield _link(f"link {path}", path)


def _folder_links() -> Iterator[Thing]:
    folders = dict.fromkeys(path.partition("/")[0] for path in OF_HOSTS if "/" in path)
    for path in (*folders, "documents", f"{PLANNING}/phases/02-linked", f"{PLANNING}/quarantine", ".git/hooks", ".git/refs/yolo-fs", ".git/info"):  # fmt: skip
        yield _link(f"link {path}/", path, is_folder=True)


def _phase_links() -> Iterator[Thing]:
    yield Thing("link phase", lambda place: _moved_out(place, PHASE), lambda place: (place.root / PHASE).is_symlink())  # fmt: skip


def _moved_out(place: ArtifactPath, path: str) -> None:
    outside = place.outside / path.replace("/", "_")
    (place.root / path).rename(outside)
    (place.root / path).symlink_to(outside)


def _pipe(path: str) -> Thing:
    def planted(place: ArtifactPath) -> None:
        _remove(place.root / path)
        (place.root / path).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(place.root / path, 0o600)

    return Thing(
        f"pipe {path}", planted, lambda place: _shell(place, f"timeout 0.1 cat '{path}'") == 124
    )


def _own_pipes(place: ArtifactPath) -> Iterator[Thing]:
    for name in own_names(place):
        if name not in FOLDERS:
            yield _pipe(f".git/yolo-fs/{name}")


def _tree_pipes() -> Iterator[Thing]:
    for path in (*OF_GIT, *ARTIFACTS, *OF_HOSTS, *(f"{PLANNING}/{name}" for name in STATES)):
        yield _pipe(path)


def _endless() -> Iterator[Thing]:
    for name in ("info/attributes", "info/exclude"):
        path = f".git/{name}"

        def planted(place: ArtifactPath, path: str = path) -> None:
            _remove(place.root / path)
            (place.root / path).symlink_to("/dev/zero")

        yield Thing(f"endless {path}", planted, lambda place, path=path: _shell(place, f"timeout 0.1 cat '{path}' >/dev/null") == 124)  # type: ignore[misc]  # fmt: skip


# --- objects and refs ---

_ZONE = "+0000"
_DATES = {
    "year 10000": "253402300800 +0000", "far": "99999999999999 +0000", "beyond 64 bits": f"{2**64 * 10} +0000",
    "none": "", "no number": "1.5 x", "exponent": "1e9 +0000", "negative": "-5 +0000", "zone": "1 +9999",
    "long zone": f"1 +{'9' * 5000}", "digits": f"{'9' * 5000} +0000", "unicode": "\u0661\u0662 +0000",
}  # fmt: skip


def commit_on_top(place: ArtifactPath, text: bytes, tree: str = "HEAD^{tree}") -> str:
    """Make a commit of any form on top of the branch. `text`: from the author on."""
    repo = place.repo
    head = f"tree {repo.git('rev-parse', tree).strip()}\nparent {repo.git('rev-parse', 'HEAD').strip()}\n"
    return put_object(place, "commit", head.encode() + text)


def put_object(place: ArtifactPath | Repo, kind: str, data: bytes) -> str:
    """Store an object of any form, as git would never make it, and return its name."""
    whole = b"%s %d\0%s" % (kind.encode(), len(data), data)
    oid = hashlib.sha1(whole).hexdigest()
    git_dir = place.root / ".git"
    if git_dir.is_file():
        git_dir = place.root / git_dir.read_text().strip().removeprefix("gitdir: ")
    path = git_dir / "objects" / oid[:2] / oid[2:]
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(zlib.compress(whole, 1))
        path.chmod(0o444)
    return oid


def _odd_commit(name: str, text: bytes) -> Thing:
    """Let the branch have such a commit; where git takes it for none, another branch points at it."""
    oids: list[str] = []

    def planted(place: ArtifactPath) -> None:
        oids.append(commit_on_top(place, text))
        taken = place.repo.git("update-ref", "HEAD", oids[-1], ok=(0, 128))
        place.repo.git("cat-file", "-e", oids[-1])
        if place.repo.git("rev-parse", "HEAD").strip() != oids[-1]:
            write_ref(place, f"refs/heads/{name.replace(' ', '-')}{taken}", oids[-1])

    def is_there(place: ArtifactPath) -> bool:
        return place.repo.git("cat-file", "-t", oids[-1]).strip() == "commit"

    return Thing(f"commit {name}", planted, is_there)


_WHO = "A <a@b> 1700000000 +0000"


def _history() -> Iterator[Thing]:
    for name, date in _DATES.items():
        yield _odd_commit(f"committed at {name}", f"author {_WHO}\ncommitter A <a@b> {date}\n\nfeat(01-01): T1 x\n".encode())  # fmt: skip
        yield _odd_commit(f"authored at {name}", f"author A <a@b> {date}\ncommitter {_WHO}\n\nfeat(01-01): T1 x\n".encode())  # fmt: skip
    head = f"author {_WHO}\ncommitter {_WHO}\n"
    for name, text in {
        "no author": f"committer {_WHO}\n\nx\n",
        "no committer": f"author {_WHO}\n\nx\n",
        "nobody": "\nx\n",
        "nothing": "",
        "no message": head,
        "name alone": "author A\ncommitter\n\nx\n",
        "utf-16": f"{head}encoding utf-16\n\nx\n",
        "unknown encoding": f"{head}encoding \x1bnone\n\nfeat(01-01): T1 \udcff\n",
        "long header": f"{head}gpgsig {'x' * 2_000_000}\n\nx\n",
        "many headers": head + "x y\n" * 50_000 + "\nx\n",
        "two committers": f"{head}committer B <b@c> 1 +0000\n\nx\n",
        "raw": f"author {RAW} <{RAW}> 1 +0000\ncommitter {RAW} <{RAW}> 1 +0000\n\nfeat(01-01): T1 {RAW}\n\n{RAW}: {RAW}\n",
        "long subject": f"{head}\nfeat(01-01): T1 {'x' * 1_000_000}\n",
        "many trailers": f"{head}\nfeat(01-01): T1 x\n\n" + "Yolo-Origin: x/" + "a" * 40 + "\n" * 60_000,
        "forged origin": f"{head}\ndocs(01): plan 01-01\n\nYolo-Origin: {RAW}/{'a' * 40}\nYolo-By: {RAW}\n",
        "spaces": f"{head}\na{' ' * 1500}b\n",
        "NUL": f"{head}\nfeat(01-01): T1 \0x\n",
    }.items():  # fmt: skip
        yield _odd_commit(name, text.encode("utf-8", "surrogateescape"))
    sane = f"author {_WHO}\ncommitter {_WHO}\n\nchore: the last one is as others are\n"
    yield _odd_commit("sane", sane.encode())


def entry_of(mode: str, name: str, oid: str) -> bytes:
    return f"{mode} {name}\0".encode("utf-8", "surrogateescape") + bytes.fromhex(oid)


_NAMES = (
    "..", ".", ".git", ".GIT", "git~1", ".g\u200cit", ".git::$INDEX_ALLOCATION", "a/b", "../SLASH", "/tmp/ABS", "",
    "a\nb", RAW, "\udcff", "x" * 5000, "-rf", "$(touch pwned)", "con", "a\\b",
)  # fmt: skip


def _trees() -> Iterator[Thing]:
    """Trees of the branch, below the planning tree and beside it."""

    def planted(place: ArtifactPath) -> None:
        blob = put_object(place, "blob", b"#!/bin/sh\n")
        odd = b"".join(entry_of("100755", name, blob) for name in _NAMES)
        deep = put_object(place, "tree", entry_of("100644", "leaf", blob))
        for _ in range(2000):
            deep = put_object(place, "tree", entry_of("40000", "d", deep))
        more = entry_of("160000", "module", "1" * 40) + entry_of("120000", "link", put_object(place, "blob", b"../../../outside/victim")) + entry_of("7777777", "mode", blob) + entry_of("40000", "gone", "2" * 40)  # fmt: skip
        folder = put_object(place, "tree", odd + entry_of("40000", "deep", deep) + more)
        place.repo.git("read-tree", "HEAD")
        listed = place.repo.git("ls-tree", "-z", "HEAD").split("\0")
        top = b"".join(entry_of(*_parts(line)) for line in listed if line)
        phases = _grafted(place, f"HEAD:{PHASE}", entry_of("40000", "odd", folder))
        for name in reversed(PHASE.split("/")[1:]):
            parent = {"01-auth": f"{PLANNING}/phases", "phases": PLANNING}[name]
            phases = _grafted(place, f"HEAD:{parent}", entry_of("40000", name, phases), name)
        tree = put_object(place, "tree", _without(top, PLANNING) + entry_of("40000", PLANNING, phases) + entry_of("40000", "odd", folder))  # fmt: skip
        text = f"author {_WHO}\ncommitter {_WHO}\n\nchore: odd trees\n".encode()
        head = f"tree {tree}\nparent {place.repo.git('rev-parse', 'HEAD').strip()}\n".encode()
        place.repo.git("update-ref", "HEAD", put_object(place, "commit", head + text))

    yield Thing(
        "odd trees", planted, lambda place: _shell(place, "git fsck 2>&1 | grep -q hasDotgit") == 0
    )


def _parts(line: str) -> tuple[str, str, str]:
    facts, _, name = line.partition("\t")
    mode, _, oid = facts.split(" ")
    return mode.lstrip("0"), name, oid


def _grafted(place: ArtifactPath, tree: str, entry: bytes, instead: str = "") -> str:
    listed = place.repo.git("ls-tree", "-z", tree).split("\0")
    kept = b"".join(
        entry_of(*_parts(line)) for line in listed if line and _parts(line)[1] != instead
    )
    return put_object(place, "tree", kept + entry)


def _without(top: bytes, name: str) -> bytes:
    kept, rest = b"", top
    while rest:
        head, _, tail = rest.partition(b"\0")
        one, rest = head + b"\0" + tail[:20], tail[20:]
        if head.partition(b" ")[2] != name.encode():
            kept += one
    return kept


def _kept() -> Iterator[Thing]:
    """What is kept, as somebody forged it: each entry a tree that leads elsewhere."""

    def planted(place: ArtifactPath) -> None:
        blob = put_object(place, "blob", f"#!/bin/sh\ntouch {place.fired}/kept\n".encode())
        link = put_object(place, "blob", str(place.outside).encode())
        folder = put_object(place, "tree", entry_of("100755", "post-index-change", blob))
        through = put_object(place, "tree", entry_of("100644", "THROUGH", blob))
        hooks = put_object(place, "tree", entry_of("40000", "hooks", folder))
        up = put_object(
            place,
            "tree",
            entry_of("40000", "..", put_object(place, "tree", entry_of("100644", "UP", blob))),
        )
        trees = (
            entry_of("40000", ".git", hooks), entry_of("40000", "..", up), entry_of("100644", "../SLASH", blob),
            entry_of("100644", f"{place.outside}/ABS", blob),
            entry_of("120000", "lnk", link) + entry_of("40000", "lnk", through),
            entry_of("40000", ".GIT", hooks) + entry_of("40000", "git~1", hooks),
            entry_of("120000", "lnk2", link), entry_of("40000", "lnk2", through),
        )  # fmt: skip
        tip = ""
        for number, entries in enumerate(trees, 1):
            facts = {
                "number": number, "at": "2026-01-01T00:00:00Z", "paths": [RAW], "files": 1, "size_bytes": 5,
                "cause": {"reasons": ["missing_key"], "command": RAW, "agent": RAW}, "dropped": 0,
            }  # fmt: skip
            parent = f"parent {tip}\n" if tip else ""
            text = f"tree {put_object(place, 'tree', entries)}\n{parent}author {_WHO}\ncommitter {_WHO}\n\nkept {number}\n\n{json.dumps(facts)}\n"
            tip = put_object(place, "commit", text.encode())
        write_ref(place, "refs/yolo-fs/kept/main", tip)

    yield Thing("kept trees", planted, lambda place: ".git/hooks" in place.repo.git("ls-tree", "-r", "refs/yolo-fs/kept/main~7"))  # fmt: skip


def write_ref(place: ArtifactPath, ref: str, oid: str) -> None:
    path = place.root / ".git" / ref
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{oid}\n")


_REFS = (
    "refs/heads/-rf", "refs/heads/--help", "refs/heads/$(touch${IFS}pwned)", "refs/heads/\u202eb", "refs/heads/\udcff",
    "refs/heads/HEAD", "refs/heads/" + "x" * 200, "refs/tags/main", "refs/tags/HEAD", "refs/yolo-fs/lines/\u202ex",
    "refs/yolo-fs/remote/other", "refs/yolo/team/-x", "refs/yolo-fs/beside/-x", "refs/yolo-fs/kept/worktrees/x",
    "refs/remotes/origin/\u202ex", "refs/notes/commits", "refs/stash", "refs/replace/" + "3" * 40,
)  # fmt: skip


def _refs() -> Iterator[Thing]:
    for ref in _REFS:
        yield Thing(f"ref {ref!a}", lambda place, ref=ref: write_ref(place, ref, place.repo.git("rev-parse", "HEAD").strip()), lambda place, ref=ref: bool(place.repo.git("rev-parse", "--verify", "-q", ref)))  # type: ignore[misc]  # fmt: skip
    for ref, text in (
        ("refs/heads/loop", "ref: refs/heads/loop"), ("refs/heads/away", "ref: ../../../outside/secret"),
        ("refs/yolo-fs/remote/torn", "x"), ("refs/yolo-fs/lines/blob", "BLOB"), ("refs/yolo-fs/lines/gone", "4" * 40),
    ):  # fmt: skip
        yield Thing(f"ref {ref}", lambda place, ref=ref, text=text: write_ref(place, ref, put_object(place, "blob", b"x") if text == "BLOB" else text), lambda place: _shell(place, "git fsck") != 0)  # type: ignore[misc]  # fmt: skip


_DEEP = "[" * 200_000
LEASES = {
    "deep": _DEEP, "deep objects": '{"a":' * 100_000, "digits": '{"holder":"x","epoch":' + "9" * 6000 + ',"ttl_s":9}',
    "raw": json.dumps({"dept": "backend", "holder": RAW, "lent_by": RAW, "epoch": 3, "ttl_s": 9, "at": RAW}),
    "NaN": '{"holder":"x","epoch":NaN,"ttl_s":-Infinity}', "large": json.dumps({"holder": "x" * 3_000_000}),
    "bytes": "\udcff\udcfe", "list": "[1,2]", "empty": "",
}  # fmt: skip


def _leases(first: int) -> Callable[[], Iterator[Thing]]:
    """Each department has one lease at a time, so a group has as many of them."""

    def things() -> Iterator[Thing]:
        for dept, (name, text) in zip(WORKING_NAMES, list(LEASES.items())[first:], strict=False):
            path = f".yolo-team/leases/{dept}.json"
            yield Thing(f"lease {name}", lambda place, path=path, text=text: pushed(place, path, text), lambda place, path=path: _has_pushed(place, path))  # type: ignore[misc]  # fmt: skip

    return things


def _team() -> Iterator[Thing]:
    """What a member may push that is none of the team's business."""
    for path, text in (
        (f"{PLANNING}/config.json", '{"yolo_fs":{"legacy":true}}'), (".claude/settings.json", "{}"), ("AGENTS.md", RAW),
        (f"{PHASE}/decisions.jsonl", _DEEP), (f"{PHASE}/research.jsonl", RAW), (f"{PLANNING}/ACTIVE", "../../outside"),
        (f"{PHASE}/architecture.toon", "a[99999999999]{x}:\n"), (f"{PHASE}/01-03.plan.jsonl", "x" * 32_000_000),
        (f"{PHASE}/.execution-state.json", _DEEP), (f"{PHASE}/.handoff-backend-complete", ""),
    ):  # fmt: skip
        yield Thing(f"pushed {path}", lambda place, path=path, text=text: pushed(place, path, text), lambda place, path=path: _has_pushed(place, path))  # type: ignore[misc]  # fmt: skip


def pushed(place: ArtifactPath, path: str, text: str) -> None:
    """Let a member of the team push a file into its branch."""
    bare = ("--git-dir", str(place.base / "remote.git"))
    ref = "refs/heads/yolo/team/main"
    repo = place.repo
    index = {"GIT_INDEX_FILE": str(place.base / "index-of-another")}
    tip = repo.git(*bare, "rev-parse", ref).strip()
    repo.git(*bare, "read-tree", ref, **index)
    data = text.encode("utf-8", "surrogateescape")
    oid = subprocess.run(["git", *bare, "hash-object", "-w", "--stdin"], input=data, env=repo.env, cwd=place.root, capture_output=True, check=True).stdout.decode().strip()  # fmt: skip
    repo.git(*bare, "update-index", "--add", "--cacheinfo", f"100644,{oid},{path}", **index)
    tree = repo.git(*bare, "write-tree", **index).strip()
    made = repo.git(*bare, "commit-tree", tree, "-p", tip, "-m", f"docs(01): {RAW}\n\nYolo-Origin: x/{'a' * 40}").strip()  # fmt: skip
    repo.git(*bare, "update-ref", ref, made)
    (place.base / "index-of-another").unlink()


def _has_pushed(place: ArtifactPath, path: str) -> bool:
    command = f"git --git-dir ../remote.git cat-file -e 'refs/heads/yolo/team/main:{path}'"
    return _shell(place, command) == 0


# --- what our own files hold ---


def _own_texts(text: Callable[[Path], str]) -> Callable[[ArtifactPath], Iterator[Thing]]:
    def things(place: ArtifactPath) -> Iterator[Thing]:
        names = [f".git/yolo-fs/{name}" for name in own_names(place) if name not in (*FOLDERS, SOCKET, "git-hook")]  # fmt: skip
        for path in (*names, *OF_HOSTS, *(f"{PLANNING}/{name}" for name in STATES)):
            yield Thing(f"content of {path}", _filled(path, text), lambda place, path=path: (place.root / path).stat().st_size > 0)  # type: ignore[misc]  # fmt: skip

    return things


def _filled(path: str, text: Callable[[Path], str]) -> Callable[[ArtifactPath], None]:
    def planted(place: ArtifactPath) -> None:
        file = place.root / path
        if file.is_dir():
            _remove(file)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text(file).encode("utf-8", "surrogateescape"))
        file.chmod(0o600)

    return planted


def _spoilt(file: Path) -> str:
    """Return what a file holds, with another text in the place of each text, number and time."""
    try:
        lines = file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]
        return "\n".join(json.dumps(_worse(json.loads(line))) for line in lines) + "\n"
    except (OSError, ValueError):
        return json.dumps({"id": RAW, "pid": 1, "at": RAW, "running": True, "seq": -1, RAW: RAW})


def _worse(value: Any) -> Any:
    match value:
        case dict():
            return {key: _worse(each) for key, each in value.items()} | {RAW: RAW}
        case list():
            return [_worse(each) for each in value] + [RAW]
        case bool() | None:
            return value
        case int() | float():
            return 10**40
        case _:
            return f"{value}{RAW}"


def _turned(file: Path) -> str:
    """Return what a file holds, with values of other types."""
    try:
        lines = file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]
        return "\n".join(json.dumps(_other(json.loads(line))) for line in lines) + "\n"
    except (OSError, ValueError):
        return "null\n"


def _other(value: Any) -> Any:
    match value:
        case dict():
            return {key: _other(each) for key, each in value.items()}
        case list():
            return {"0": "x"}
        case bool() | None:
            return "x"
        case int() | float():
            return [str(value)]
        case _:
            return {"text": value} if len(value) % 2 else -(10**30)


def _inner(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Change the values of a note, and leave its outermost shape as it is."""

    def changed(value: dict[str, Any]) -> dict[str, Any]:
        return {
            key: [change(one) for one in each] if isinstance(each, list) else change(each)
            for key, each in value.items()
        }

    return changed


def _one_of_each(file: Path) -> str:
    """Return content of a kind that the name of the file decides."""
    kinds = (lambda _: _DEEP, _spoilt, _turned)
    return kinds[len(file.name) % 3](file)


# --- what the database of what nothing else tells holds ---

_NOTES: Mapping[str, Any] = {
    "autofixed": {"files": [{"path": f"../../outside/{RAW}", "blob": RAW, "mended": 10**17, "at": RAW}]},
    "claims": {"claims": [{"agent": f"dev-1{RAW}", "task": TASK, "since": RAW, "at": 10**15, "files": ["../../outside/secret", "/etc/passwd", RAW]}]},
    "company-runs": {"runs": [{"id": "R20260101000000ab12", "phase": "01-auth", "intent": RAW, "host": RAW, "started": 1e9, "ended": None, "outcome": RAW,
        "acts": [{"number": 1, "agent": "dev", "department": RAW, "step": RAW, "task": RAW, "attempt": 10**17, "started": 1e9, "ended": None, "outcome": "",
            "tokens": 10**17, "cost_usd": 1e17, "tool": RAW, "key": [RAW], "before": RAW}]}]},
    "crew-clock": {"boot": RAW, "since_s": {RAW: 6e10, "dev": -6e10}},
    "crew-told": {"told": [RAW] * 1000},
    "escalation-clock": {"boot": RAW, "since_s": {f"ESC-01-01-T1{RAW}": -6e10}},
    "handoff-overrides": {"overrides": [{"path": "../../outside/secret", "digest": RAW, "branch": RAW, "faults": [RAW], "because": RAW, "by": RAW, "at": RAW}]},
    "verifications": {"runs": [{"commit": RAW, "sources": RAW, "command": [RAW], "passed": False, "how": RAW, "is_clean": False, "began": RAW,
        "seconds": 1e17, "output": RAW}]},
}  # fmt: skip
"""Name of a value → one that has our shape, and says the worst."""


def _notes(worse: Callable[[Any], Any]) -> Callable[[], Iterator[Thing]]:
    def things() -> Iterator[Thing]:
        for name, value in _NOTES.items():
            yield Thing(f"note {name}", _noted(name, json.dumps(worse(value))), lambda place, name=name: name in _kept_notes(place))  # type: ignore[misc]  # fmt: skip
        for name in ("stream.log", "errors.log", "pid", "brief.md"):
            path = f".git/yolo-fs/company/R20260101000000ab12-001-dev/{name}"
            yield _link(f"link {name} of a run", path) if name != "pid" else Thing(
                "process of a run", _filled(path, lambda _: json.dumps({"pid": os.getppid()})), lambda place: True
            )  # fmt: skip

    return things


def _noted(name: str, told: str) -> Callable[[ArtifactPath], None]:
    def planted(place: ArtifactPath) -> None:
        with closing(sqlite3.connect(place.own / "state.db")) as state, state:
            state.execute("insert or replace into notes values (?, ?)", (name, told))

    return planted


def _kept_notes(place: ArtifactPath) -> list[str]:
    with closing(sqlite3.connect(place.own / "state.db")) as state:
        return [name for (name,) in state.execute("select name from notes")]


# --- settings ---

_SETTINGS: Mapping[str, Any] = {
    "webhook": "touch pwned", "command": "touch pwned", "sinks": [["touch", "pwned"]], "directive_roots": ["../../..", "/etc", ".git", "~"],
    "required_reading": "../../etc/passwd\n# forged", "max_depth": 99_999_999, "max_file_bytes": 10**30, "commits_per_minute": -1,
    "legacy": True, "durability": "none", "secrets_allowed": ["*"], "safety_net": False, "aliases": {"gaps": {"__class__": "x"}},
    "settle_ms": 10**400, RAW: RAW, "gate_command": "touch pwned", "hooks": {"x": "touch pwned"},
}  # fmt: skip


def _settings() -> Iterator[Thing]:
    def planted(place: ArtifactPath) -> None:
        place.repo.file(
            f"{PLANNING}/config.json",
            json.dumps({"yolo_fs": _SETTINGS, "departments": {RAW: True}}),
        )

    yield Thing("every setting", planted, lambda place: "pwned" in (place.root / PLANNING / "config.json").read_text())  # fmt: skip


def _deep_settings() -> Iterator[Thing]:
    yield Thing("deep settings", lambda place: place.repo.file(f"{PLANNING}/config.json", '{"a":' * 100_000), lambda place: _raises(place))  # fmt: skip


def _raises(place: ArtifactPath) -> bool:
    try:
        json.loads((place.root / PLANNING / "config.json").read_text())
    except (RecursionError, ValueError):
        return True
    return False


GIT_KEYS = {
    "core.attributesFile": "PIPE", "core.excludesFile": "PIPE", "diff.orderFile": "PIPE", "commit.template": "PIPE", "mailmap.file": "PIPE",
    "user.name": RAW, "user.email": "a@b\n<x>", "core.commentChar": ";", "i18n.commitEncoding": "UTF-16", "i18n.logOutputEncoding": "UTF-16",
    "core.abbrev": "4", "core.bigFileThreshold": "1", "core.sharedRepository": "0777", "core.logAllRefUpdates": "always", "log.date": "format:\x1b[2J",
    "log.mailmap": "true", "log.follow": "true", "core.splitIndex": "true", "core.autocrlf": "true", "core.eol": "crlf", "core.safecrlf": "true",
    "feature.manyFiles": "true", "format.pretty": "%x1b[2J%s", "color.ui": "always", "column.ui": "always", "diff.noprefix": "true", "core.fileMode": "false",
    "core.symlinks": "false", "core.ignoreCase": "true", "core.precomposeUnicode": "true", "remote.origin.mirror": "true", "remote.origin.push": "+refs/*:refs/*",
    "branch.main.remote": "origin", "push.default": "matching", "push.followTags": "true", "transfer.hideRefs": "refs/yolo", "fetch.recurseSubmodules": "true",
    "status.submoduleSummary": "true", "diff.submodule": "log", "diff.ignoreSubmodules": "none", "diff.renames": "copies", "merge.renames": "true",
    "grep.lineNumber": "true", "log.showSignature": "true", "core.preloadIndex": "true", "index.threads": "999999", "pack.threads": "999999", "core.compression": "9",
    "gc.auto": "1", "gc.autoDetach": "true", "maintenance.auto": "true", "receive.denyCurrentBranch": "ignore", "core.deltaBaseCacheLimit": "1",
    "url.file:///nowhere/.insteadOf": "https://", "http.proxy": "http://127.0.0.1:9", "http.extraHeader": "X: y", "http.sslVerify": "false", "core.quotePath": "false",
    "alias.status": "status --porcelain", "blame.ignoreRevsFile": "PIPE", "core.alternateRefsPrefixes": "refs/x", "extensions.preciousObjects": "true",
}  # fmt: skip
"""Keys that name no program, but a file, a place or a form."""


def _git_keys(*, pipes: bool) -> Callable[[], Iterator[Thing]]:
    """What leads to a pipe stands apart: stock git waits there for ever, whatever it is asked."""

    def things() -> Iterator[Thing]:
        for key, value in GIT_KEYS.items():
            if (value == "PIPE") is pipes:
                yield Thing(f"key {key}", _set(key, value), lambda place, key=key: _shell(place, f"git config --get '{key}'") == 0)  # type: ignore[misc]  # fmt: skip

    return things


def _set(key: str, value: str) -> Callable[[ArtifactPath], None]:
    def planted(place: ArtifactPath) -> None:
        if value == "PIPE":
            os.mkfifo(place.root / ".git" / key)
        place.repo.git("config", key, f"{place.root}/.git/{key}" if value == "PIPE" else value)

    return planted


# --- the groups ---

Group = Callable[[ArtifactPath], Iterator[Thing]]


def _at_any(things: Callable[[], Iterator[Thing]]) -> Group:
    return lambda _: things()


GROUPS: Mapping[str, Group] = {
    "programs": _at_any(_programs),
    "work tree settings": _at_any(_of_one_work_tree),
    "planted membership": _at_any(_membership),
    "own links": _own_links,
    "own folder": _at_any(_own_folder),
    "tree links": _at_any(_tree_links),
    "folder links": _at_any(_folder_links),
    "phase link": _at_any(_phase_links),
    "own pipes": _own_pipes,
    "tree pipes": _at_any(_tree_pipes),
    "endless files": _at_any(_endless),
    "history": _at_any(_history),
    "trees": _at_any(_trees),
    "kept": _at_any(_kept),
    "refs": _at_any(_refs),
    "team": _at_any(_team),
    **{f"leases {at}": _at_any(_leases(at)) for at in range(0, len(LEASES), len(WORKING_NAMES))},
    "deep files": _own_texts(lambda _: _DEEP),
    "raw files": _own_texts(_spoilt),
    "other types": _own_texts(_turned),
    "mixed files": _own_texts(_one_of_each),
    "notes": _at_any(_notes(lambda value: value)),
    "notes of other types": _at_any(_notes(_inner(_other))),
    "settings": _at_any(_settings),
    "deep settings": _at_any(_deep_settings),
    "git settings": _at_any(_git_keys(pipes=False)),
    "git pipes": _at_any(_git_keys(pipes=True)),
}
"""Name of a group → its things. Those of one group stand in one repository."""
