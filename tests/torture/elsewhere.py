"""Other file systems than that of the machine, and the real programs of others that people run beside us."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.e2e.artifacts import mixed
from tests.e2e.repo import Repo, make_repo
from tests.torture.flood import PATIENCE_S
from tests.torture.surroundings import Ground, SkipError, Writelog, settled

_ARTIFACTS = 40

# --- file systems ----------------------------------------------------------------------------------------------------

IMAGES = {
    "tmpfs": (),
    "overlay": (),
    "btrfs": ("mkfs.btrfs", "-q"),
    "xfs": ("mkfs.xfs", "-q"),
    "ext4 without parts of a second": ("mkfs.ext4", "-q", "-I", "128"),
    "ext4 casefold": ("mkfs.ext4", "-q", "-O", "casefold"),
}
"""File system → what makes an image of it; nothing where none is needed."""

_HAS_UNICODE = Path("/sys/fs/ext4/features/casefold")


def file_systems(ground: Ground, count: int) -> None:
    """Kill a daemon between writes in a repository on another file system, with all settings as shipped."""
    skipped = []
    for kind in itertools.islice(itertools.cycle(IMAGES), count):
        try:
            mount = mounted(ground, kind)
        except SkipError as why:
            skipped.append(f"{kind}: skipped: {why}")
            continue
        _kill_between_writes(ground, make_repo(mount / "work", mount / "home"), kind)
    ground.tally.notes += skipped
    if len(skipped) == count:
        raise SkipError("; ".join(skipped))


def mounted(ground: Ground, kind: str) -> Path:
    """Mount a file system of that kind, which the ground unmounts.

    Raises:
        SkipError: this machine or user cannot, in its own words.
    """
    place = ground.room_to_mount()
    image = place.with_suffix(".image")
    match kind:
        case "tmpfs":
            command = ["mount", "-t", "tmpfs", "torture", str(place)]
        case "overlay":
            layers = [place.with_suffix(f".{name}") for name in ("lower", "upper", "work")]
            for layer in layers:
                layer.mkdir()
            options = "lowerdir={},upperdir={},workdir={}".format(*layers)
            command = ["mount", "-t", "overlay", "-o", options, "torture", str(place)]
        case _:
            make = IMAGES[kind]
            if not shutil.which(make[0]):
                raise SkipError(f"{make[0]} is not installed")
            if kind == "ext4 casefold" and not _HAS_UNICODE.exists():
                raise SkipError("the kernel is built without CONFIG_UNICODE")
            with open(image, "wb") as file:
                file.truncate(512 << 20)
            subprocess.run([*make, str(image)], check=True, capture_output=True)
            command = ["mount", "-o", "loop", str(image), str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["mount failed"]
        raise SkipError(said[0].removeprefix(f"mount: {place}: "))
    if kind == "ext4 casefold":
        subprocess.run(["chattr", "+F", str(place)], check=True)
    return place


def _kill_between_writes(ground: Ground, repo: Repo, of: str) -> None:
    log = Writelog(repo)
    artifacts = mixed(_ARTIFACTS)
    daemon = ground.daemon(repo)
    with log.untouched():
        for first in range(0, _ARTIFACTS, 10):
            daemon.start()
            log.write(*artifacts[first : first + 5])
            daemon.wait_committed(artifacts[first : first + 5], PATIENCE_S)
            log.acknowledged(daemon.mailbox.events)
            log.write(*artifacts[first + 5 : first + 10])
            daemon.kill(with_helpers=True)
            for lock in (".git/index.lock", ".git/HEAD.lock", ".git/refs/heads/main.lock"):
                (repo.root / lock).unlink(missing_ok=True)  # a killed git leaves it to the user
        daemon.start()
        settled(daemon, PATIENCE_S)
    daemon.kill()
    ground.tally.count += 1
    ground.tally.notes.append(f"{of}: {_ARTIFACTS} artifacts, 4 kills")
    ground.judge(repo, log, of)


# --- programs --------------------------------------------------------------------------------------------------------


def lfs(repo: Repo, text: str, turn: int) -> None:
    """Commit a large file that Git LFS keeps beside."""
    repo.git("lfs", "install", "--local", "--force")
    repo.git("lfs", "track", "*.bin")
    repo.file(f"assets/{turn}.bin", "large\n" * 1000 * (turn + 1))
    repo.git("add", ".gitattributes", "assets")
    repo.git("commit", "-q", "-m", text, "--", ".gitattributes", "assets")
    assert "git-lfs" in repo.look("show", f"HEAD:assets/{turn}.bin"), "LFS did not filter"


def husky(repo: Repo, text: str, turn: int) -> None:
    """Commit under a hook of husky, which lets `core.hooksPath` point into the work tree."""
    _call(repo, "husky")
    _commit_under_a_hook(repo, text, turn, ".husky/pre-commit", "touch .husky/_/ran\n")
    assert (repo.root / ".husky/_/ran").exists(), "the hook of husky did not run"


def lefthook(repo: Repo, text: str, turn: int) -> None:
    """Commit under a hook of lefthook, which writes into `.git/hooks`."""
    settings = "pre-commit:\n  commands:\n    marks:\n      run: touch .git/ran\n"
    repo.file("lefthook.yml", settings)
    _call(repo, "lefthook", "install", "--force")
    _commit_under_a_hook(repo, text, turn, "lefthook.yml", settings)
    assert (repo.root / ".git/ran").exists(), "the hook of lefthook did not run"


def pre_commit(repo: Repo, text: str, turn: int) -> None:
    """Commit under a hook of pre-commit, which takes away for a moment whatever is not staged."""
    settings = (
        "repos:\n- repo: local\n  hooks:\n  - {id: marks, name: marks, language: system, "
        "entry: touch .git/ran, always_run: true, pass_filenames: false}\n"
    )
    repo.file(".pre-commit-config.yaml", settings)
    repo.git("add", ".pre-commit-config.yaml")
    _call(repo, "pre-commit", "install")
    repo.file("src/file2.py", f"unstaged = {turn}\n")
    _commit_under_a_hook(repo, text, turn, ".pre-commit-config.yaml", settings)
    assert (repo.root / ".git/ran").exists(), "the hook of pre-commit did not run"
    assert (repo.root / "src/file2.py").read_text() == f"unstaged = {turn}\n"


def jj(repo: Repo, text: str, turn: int) -> None:
    """Rewrite a commit with jj, which detaches HEAD while it works, and go back to the branch."""
    if not (repo.root / ".jj").exists():
        _call(repo, "jj", "git", "init", "--colocate")
        _call(repo, "jj", "config", "set", "--user", "user.name", "Ada")
        _call(repo, "jj", "config", "set", "--user", "user.email", "ada@example.org")
    path = repo.file(f"src/jj{turn}.py", "line = 1\n")
    _call(repo, "jj", "commit", "-m", "to be rewritten", str(path))
    path.write_text("line = 2\n")
    _call(repo, "jj", "squash", "--into", "@-", str(path))
    _call(repo, "jj", "describe", "-r", "@-", "-m", text)
    _call(
        repo, "jj", "rebase", "-b", "@-", "-d", "main"
    )  # upon what the daemon committed meanwhile
    _call(repo, "jj", "bookmark", "set", "main", "-r", "@-")
    repo.git("checkout", "-q", "main")


def _commit_under_a_hook(repo: Repo, text: str, turn: int, path: str, content: str) -> None:
    repo.file(path, content).chmod(0o755)
    repo.file("src/file1.py", f"turn = {turn}\n")
    repo.git("add", "--", path)
    repo.git("commit", "-q", "-m", text, "--", path, "src/file1.py")


def _call(repo: Repo, *words: str) -> str:
    done = subprocess.run(
        words, cwd=repo.root, env=repo.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}: {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


_PROGRAMS: dict[str, tuple[Callable[[Repo, str, int], None], tuple[str, ...]]] = {
    "git-lfs": (lfs, ("git-lfs", "--version")),
    "husky": (husky, ()),
    "lefthook": (lefthook, ("lefthook", "version")),
    "pre-commit": (pre_commit, ("pre-commit", "--version")),
    "jj": (jj, ("jj", "--version")),
}
"""Program → a commit that it takes part in, and how it tells its version."""
_TURNS = 5


def programs(ground: Ground, count: int) -> None:
    """Let a real program of others take part in the user's commits while artifacts are written."""
    skipped = []
    for name in itertools.islice(itertools.cycle(_PROGRAMS), count):
        if shutil.which(name):
            _beside(ground, name)
        else:
            skipped.append(f"{name}: skipped: not installed")
    ground.tally.notes += skipped
    if len(skipped) == count:
        raise SkipError("; ".join(skipped))


def _beside(ground: Ground, name: str) -> None:
    commit, version = _PROGRAMS[name]
    repo = ground.repo(rescan_s=1)
    repo.yolo_fs("init")
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "chore: the planning tree")
    log = Writelog(repo)
    daemon = ground.daemon(repo)
    daemon.start()
    artifacts = mixed(2 * _TURNS)
    for turn in range(_TURNS):
        log.write(artifacts[2 * turn])
        text = f"feat: beside {name}, turn {turn}"
        log.subject(text)
        commit(repo, text, turn)
        log.write(artifacts[2 * turn + 1])
        if text not in repo.subjects("main"):
            ground.fault(f"{name}: the user's commit is gone: {text}")
        daemon.wait_committed(artifacts[: 2 * turn + 2], PATIENCE_S)
    settled(daemon, PATIENCE_S)
    log.acknowledged(daemon.mailbox.events)
    daemon.kill()
    ground.tally.count += 1
    told = re.search(r"\d[\d.]*", _call(repo, *version) if version else "")
    ground.tally.notes.append(
        f"{name} {told.group() if told else '(any version)'}: {_TURNS} commits beside {len(artifacts)} artifacts"
    )
    ground.judge(repo, log, name)
