"""Where a walk goes: each row makes a repository somewhere, and says who works in it and how."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from tests.e2e.repo import environment
from tests.support.git_servers import SSHD, by_git_daemon, sshd
from tests.systems.gits import CACHE
from tests.systems.walk import PLAN, PROGRAM, Seat, Walk
from tests.torture.cable import Cable
from tests.torture.elsewhere import IMAGES, mounted
from tests.torture.surroundings import Ground, SkipError, unmount
from yolo_fs.core.reasons import Exit

ArtifactPath = Callable[[Ground], AbstractContextManager[Walk]]
_SETTINGS = "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"


def _seat(place: Path, name: str = "work", under: Sequence[str] = (), **more: str) -> Seat:
    """Return a seat in a folder that is there, with a home of its own."""
    home = place / "home"
    home.mkdir(exist_ok=True)
    (home / ".gitconfig").write_text(_SETTINGS)
    env = {
        key: value
        for key, value in environment(home).items()
        if key not in ("PYTHONWARNINGS", "YOLO_FS_COLD")
    }
    (place / name).mkdir(parents=True, exist_ok=True)
    return Seat(place / name, {**env, **more}, under)


def _begun(seat: Seat, *form: str) -> Seat:
    """Make a repository there with a first commit."""
    made = seat.run("git", "init", "-q", *form)
    if made.returncode:
        raise SkipError(made.stderr.strip().splitlines()[0])
    return _committed(seat)


def _committed(seat: Seat) -> Seat:
    seat.write("README.md", b"A project.\n")
    seat.write("src/token.ts", b"export {}\n")
    seat.git("add", "-A")
    seat.git("commit", "-q", "-m", "chore: begin")
    return seat


# --- repositories ----------------------------------------------------------------------------------------------------


def _formed(*form: str, name: str = "work") -> ArtifactPath:
    """A repository that `git init` makes with these options."""

    @contextmanager
    def made(ground: Ground) -> Iterator[Walk]:
        yield Walk(_begun(_seat(ground.place, name), *form))

    return made


def _set(*commands: str) -> ArtifactPath:
    """A repository in which these commands of git were given."""

    @contextmanager
    def made(ground: Ground) -> Iterator[Walk]:
        seat = _begun(_seat(ground.place))
        for command in commands:
            done = seat.run("git", *command.split())
            if done.returncode:
                raise SkipError(done.stderr.strip().splitlines()[0])
        yield Walk(seat)

    return made


def _with(**more: str) -> ArtifactPath:
    """An environment with these variables."""

    @contextmanager
    def made(ground: Ground) -> Iterator[Walk]:
        yield Walk(_begun(_seat(ground.place, **more)))

    return made


def _without(*names: str) -> ArtifactPath:
    """An environment without these variables."""

    @contextmanager
    def made(ground: Ground) -> Iterator[Walk]:
        seat = _begun(_seat(ground.place))
        for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
            seat.git("config", key, value)
        yield Walk(
            Seat(seat.root, {key: value for key, value in seat.env.items() if key not in names})
        )

    return made


@contextmanager
def _reftable_of_a_built_git(ground: Ground) -> Iterator[Walk]:
    newest = max(
        CACHE.glob("*/bin"),
        default=None,
        key=lambda path: [int(n) for n in path.parent.name.split(".")],
    )
    if newest is None:
        raise SkipError("needs git 2.45; scripts/systems --build")
    seat = _seat(ground.place, PATH=f"{newest}:{os.environ['PATH']}")
    yield Walk(_begun(seat, "--ref-format=reftable"))


@contextmanager
def _fsmonitor_hook(ground: Ground) -> Iterator[Walk]:
    """A hook that says that anything may have changed, as watchman's does after a loss."""
    seat = _begun(_seat(ground.place))
    hook = ground.place / "fsmonitor"
    hook.write_text("#!/bin/sh\nprintf 'token\\0/\\0'\n")
    hook.chmod(0o755)
    seat.git("config", "core.fsmonitor", str(hook))
    seat.git("update-index", "--fsmonitor")
    yield Walk(seat)


@contextmanager
def _work_tree_of_a_bare_repository(ground: Ground) -> Iterator[Walk]:
    first = _begun(_seat(ground.place, "first"))
    first.git("clone", "-q", "--bare", ".", str(ground.place / "bare.git"))
    seat = _seat(ground.place, "bare.git")
    seat.git("worktree", "add", "-q", "-b", "task", str(ground.place / "work"))
    yield Walk(_seat(ground.place))


@contextmanager
def _submodule(ground: Ground) -> Iterator[Walk]:
    _begun(_seat(ground.place, "first"))
    outer = _begun(_seat(ground.place, "outer"))
    outer.git(
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(ground.place / "first"),
        "inner",
    )
    inner = _seat(ground.place, "outer/inner")
    yield Walk(inner)


def _cloned(*options: str) -> ArtifactPath:
    @contextmanager
    def made(ground: Ground) -> Iterator[Walk]:
        first = _begun(_seat(ground.place, "first"))
        first.write("src/more.ts", b"export {}\n")
        first.git("add", "-A")
        first.git("commit", "-q", "-m", "feat: more")
        first.git("config", "uploadpack.allowFilter", "true")
        first.git("clone", "-q", *options, f"file://{first.root}", str(ground.place / "work"))
        yield Walk(_seat(ground.place))

    return made


@contextmanager
def _by_a_link(ground: Ground) -> Iterator[Walk]:
    seat = _begun(_seat(ground.place))
    (ground.place / "link").symlink_to(seat.root)
    yield Walk(Seat(ground.place / "link", seat.env))


@contextmanager
def _hooks_of_all_repositories(ground: Ground) -> Iterator[Walk]:
    seat = _begun(_seat(ground.place))
    shared = ground.place / "home/hooks"
    shared.mkdir()
    (shared / "pre-commit").write_text("#!/bin/sh\nexit 0\n")
    (shared / "pre-commit").chmod(0o755)
    seat.git("config", "--global", "core.hooksPath", str(shared))
    yield Walk(seat, expected=("hook",))


# --- users -----------------------------------------------------------------------------------------------------------


def _need_root() -> None:
    if os.geteuid() or not shutil.which("nsenter"):
        raise SkipError("needs root, unshare and nsenter")


@contextmanager
def _namespace(*kinds: str, script: str = ":") -> Iterator[tuple[str, ...]]:
    """Hold a namespace after a script in it; yield what starts a program there."""
    _need_root()
    command = ["unshare", *kinds, "sh", "-c", f"{script}; echo ready; exec sleep 3600"]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert holder.stdout is not None and holder.stderr is not None
    try:
        if holder.stdout.readline() != b"ready\n":
            raise SkipError(holder.stderr.read().decode().strip())
        pid = holder.pid
        if "--fork" in kinds:
            pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        chosen = [kind.partition("=")[0] for kind in kinds if kind in ("--mount", "--pid", "--net")]
        yield ("nsenter", f"--target={pid}", *chosen)
    finally:
        holder.kill()
        if "--fork" in kinds:
            subprocess.run(["kill", "-9", str(pid)], check=False, capture_output=True)
        holder.wait()
        holder.stdout.close()
        holder.stderr.close()


def _open_to_all(*needed: Path) -> str:
    """Return a script by which every user reaches these folders, however private the ones above them are.

    pytest shuts the folders above those of its tests, and does it again whenever another run begins.
    """
    above = {
        target: [folder for folder in reversed(target.parents) if not folder.stat().st_mode & 0o001]
        for target in needed
    }
    hidden = {target: shut[0] for target, shut in above.items() if shut}
    numbers = {target: number for number, target in enumerate(hidden)}
    lines = [
        *(f"a{n}=$(mktemp -d); mount --bind {target} $a{n}" for target, n in numbers.items()),
        *(f"mount -t tmpfs -o mode=755 none {folder}" for folder in dict.fromkeys(hidden.values())),
        *(
            f"mkdir -p {target}; mount --bind $a{n} {target}; umount $a{n}; rmdir $a{n}"
            for target, n in numbers.items()
        ),
    ]
    return "; ".join(lines) or ":"


@contextmanager
def _user(ground: Ground, number: int, group: int) -> Iterator[tuple[str, ...]]:
    """Yield what starts a program as another user, who reaches this ground and our program."""
    _need_root()
    needed = (Path(sys.base_prefix), PROGRAM.parents[2], ground.place)
    ground.place.chmod(0o755)
    with _namespace("--mount", script=_open_to_all(*(each.resolve() for each in needed))) as inside:
        yield (*inside, "setpriv", f"--reuid={number}", f"--regid={group}", "--clear-groups", "--")


def _masked(mask: str) -> ArtifactPath:
    @contextmanager
    def made(ground: Ground) -> Iterator[Walk]:
        under = ("sh", "-c", f'umask {mask}; exec "$@"', "sh")
        yield Walk(_begun(_seat(ground.place, under=under)))

    return made


@contextmanager
def _plain_user(ground: Ground, script: str = ":") -> Iterator[Walk]:
    with _user(ground, 5001, 5001) as under:
        made = _begun(_seat(ground.place))
        subprocess.run(["chown", "-R", "5001:5001", str(ground.place)], check=True)
        subprocess.run(["sh", "-c", script], cwd=made.root, check=True)
        yield Walk(Seat(made.root, made.env, under))


@contextmanager
def _root_in_a_repository_of_another(ground: Ground) -> Iterator[Walk]:
    """As in a container whose user is root, with a repository of the host's user."""
    _need_root()
    seat = _begun(_seat(ground.place))
    (ground.place / "home/.gitconfig").write_text(f"{_SETTINGS}[safe]\n\tdirectory = {seat.root}\n")
    subprocess.run(["chown", "-R", "5001:5001", str(seat.root)], check=True)
    yield Walk(seat)


@contextmanager
def _daemon_of_root(ground: Ground) -> Iterator[Walk]:
    """The same, with agents that the host's user starts outside."""
    with _user(ground, 5001, 5001) as under, _root_in_a_repository_of_another(ground) as walk:
        subprocess.run(["chown", "-R", "5001:5001", str(ground.place)], check=True)
        yield Walk(walk.keeper, Seat(walk.keeper.root, walk.keeper.env, under))


@contextmanager
def _two_of_a_group(ground: Ground) -> Iterator[Walk]:
    """Two users with a clone each, whose team meets in a bare repository of their group."""
    with ExitStack() as stack:
        bare = ground.place / "team.git"
        first = _begun(_seat(ground.place, "first"))
        first.git(
            "clone", "-q", "--bare", "--config", "core.sharedRepository=group", ".", str(bare)
        )
        clones = []
        for number, name in ((5001, "work"), (5002, "other")):
            under = stack.enter_context(_user(ground, number, 6000))
            (ground.place / name).mkdir()
            clone = _seat(ground.place / name, "clone", under)
            home = ground.place / name / "home/.gitconfig"
            trusted = (bare, ground.place / "work/clone", ground.place / "work/clone/.git")
            lines = "".join(f"\tdirectory = {folder}\n" for folder in trusted)
            home.write_text(f"{_SETTINGS}[safe]\n{lines}")
            subprocess.run(["chown", "-R", f"{number}:6000", str(ground.place / name)], check=True)
            clones.append(clone)
        subprocess.run(["chown", "-R", "5001:6000", str(bare)], check=True)
        subprocess.run(["chmod", "-R", "g+rwXs", str(bare)], check=True)
        for clone in clones:
            clone.git("clone", "-q", str(bare), ".")
        stack.callback(clones[1].run, str(PROGRAM), "stop")
        yield _Joined(*clones)


@contextmanager
def _hooks_read_only(ground: Ground) -> Iterator[Walk]:
    with _plain_user(ground, script="chmod 0555 .git/hooks && chown root .git/hooks") as walk:
        yield Walk(walk.keeper, expected=("hook",))


# --- kernels ---------------------------------------------------------------------------------------------------------


def _on(kind: str) -> ArtifactPath:
    @contextmanager
    def made(ground: Ground) -> Iterator[Walk]:
        yield Walk(_begun(_seat(mounted(ground, kind))))

    return made


@contextmanager
def _exfat(ground: Ground) -> Iterator[Walk]:
    """As on a stick: names without case, no links of either kind, one mode for all."""
    if not shutil.which("mkfs.exfat"):
        raise SkipError("exfatprogs is not installed")
    place = ground.room_to_mount()
    image = place.with_suffix(".image")
    with open(image, "wb") as file:
        file.truncate(512 << 20)
    subprocess.run(["mkfs.exfat", str(image)], check=True, capture_output=True)
    with _mount("-t", "exfat,exfat-fuse", "-o", "loop,umask=077", str(image), str(place)):
        yield Walk(_begun(_seat(place)))


@contextmanager
def _planning_tree_elsewhere(ground: Ground) -> Iterator[Walk]:
    """The planning tree is a mount, as a volume of a container is: no rename leads in or out."""
    seat = _begun(_seat(ground.place))
    tree = ground.place / "work/.yolo-planning"
    tree.mkdir()
    with _mount("-t", "tmpfs", "-o", "size=64m,mode=755", "none", str(tree)):
        yield Walk(seat)


@contextmanager
def _git_directory_elsewhere(ground: Ground) -> Iterator[Walk]:
    seat = _seat(ground.place)
    (seat.root / ".git").mkdir()
    with _mount("-t", "tmpfs", "-o", "size=64m,mode=755", "none", str(seat.root / ".git")):
        yield Walk(_begun(seat))


@contextmanager
def _no_programs(ground: Ground) -> Iterator[Walk]:
    """A file system on which no program may be run, so no hook either."""
    seat = _seat(ground.place)
    with _mount("-t", "tmpfs", "-o", "size=64m,mode=755,noexec", "none", str(seat.root)):
        yield Walk(_begun(seat), expected=("hook",))


@contextmanager
def _fuse(ground: Ground, *command: str) -> Iterator[Walk]:
    """A file system that a program gives."""
    if not shutil.which(command[0]):
        raise SkipError(f"{command[0]} is not installed")
    place = ground.room_to_mount()
    for name in ("lower", "upper", "scratch"):
        (ground.place / name).mkdir()
    words = [word.format(place=ground.place) for word in command]
    done = subprocess.run([*words, str(place)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SkipError(done.stderr.strip().splitlines()[0])
    yield Walk(_begun(_seat(place)))


def _by(*command: str) -> ArtifactPath:
    return lambda ground: _fuse(ground, *command)


@contextmanager
def _mount(*words: str) -> Iterator[None]:
    done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SkipError(done.stderr.strip().splitlines()[0])
    try:
        yield
    finally:
        unmount(Path(words[-1]))


_TMP_READ_ONLY = "; ".join((
    "mount --bind /tmp /tmp",
    "mount --bind {place} {place}",  # itself below it
    "mount -o remount,bind,ro /tmp",
))  # fmt: skip


def _inside(*kinds: str, script: str = ":") -> ArtifactPath:
    @contextmanager
    def made(ground: Ground) -> Iterator[Walk]:
        with _namespace(*kinds, script=script.format(place=ground.place)) as under:
            yield Walk(_begun(_seat(ground.place, under=under)))

    return made


@contextmanager
def _rootless(ground: Ground) -> Iterator[Walk]:
    """Each command in a user namespace of its own, as podman without root does."""
    yield Walk(_begun(_seat(ground.place, under=("unshare", "--user", "--map-root-user"))))


# --- networks --------------------------------------------------------------------------------------------------------


class _Joined(Walk):
    """A clone in a team with another one; what is written here arrives there."""

    def __init__(self, keeper: Seat, other: Seat) -> None:
        super().__init__(keeper)
        self._other = other

    def start(self) -> None:
        self._other.git("pull", "-q", str(self.keeper.root), "main")
        for seat in (self.keeper, self._other):
            seat.ours("team", "join", "origin", "--yes")
        self._other.ours("start")
        super().start()

    def status(self) -> None:
        plan = self.keeper.git("show", f"HEAD:{PLAN}")
        self._until(
            lambda: self._other.run("git", "show", f"HEAD:{PLAN}").stdout.strip() == plan,
            "the plan is in the other clone",
        )
        super().status()

    def stop(self) -> None:
        self._other.ours("stop")
        super().stop()


def _remote(*, by_ssh: bool, delay_s: float = 0.0, torn_each: int = 0) -> ArtifactPath:
    """A team of two clones whose remote is behind a server on loopback; with a cable that is slow, or tears."""

    @contextmanager
    def made(ground: Ground) -> Iterator[Walk]:
        if by_ssh and not SSHD:
            raise SkipError("OpenSSH's server is not installed")
        first = _begun(_seat(ground.place, "first"))
        bare = ground.place / "team.git"
        first.git("clone", "-q", "--bare", ".", str(bare))
        with ExitStack() as stack:
            if by_ssh:
                command, where = stack.enter_context(sshd(ground.place))
                address = f"ssh://{where}{bare}"
            else:
                address = stack.enter_context(by_git_daemon(bare))
            if delay_s or torn_each:
                cable = Cable.to(address, delay_s=delay_s, torn_each=torn_each)
                address = stack.enter_context(cable).address
            clones = []
            for name in ("work", "other"):
                clone = _seat(ground.place, name)
                clone.git("clone", "-q", str(bare), ".")
                clone.git("remote", "set-url", "origin", address)
                clones.append(clone)
            if by_ssh:
                clones[1].git("config", "--global", "core.sshCommand", command)
            stack.callback(clones[1].run, str(PROGRAM), "stop")
            yield _Joined(*clones)

    return made


PLACES: Mapping[str, Mapping[str, ArtifactPath]] = {
    "repository": {
        "as shipped": _formed(),
        "sha256": _formed("--object-format=sha256"),
        "reftable": _reftable_of_a_built_git,
        "git directory elsewhere": _formed("--separate-git-dir=../elsewhere.git"),
        "blanks, quotes and umlauts in the path": _formed(name="Ünï 'côde' $(x)\tdir"),
        "reached by a link": _by_a_link,
        "work tree of a bare repository": _work_tree_of_a_bare_repository,
        "submodule": _submodule,
        "clone of depth 1": _cloned("--depth=1"),
        "clone without blobs": _cloned("--filter=blob:none"),
        "clone that borrows objects": _cloned("--shared"),
        "sparse checkout, sparse index": _set(
            "config index.sparse true",
            "sparse-checkout set --cone --sparse-index .yolo-planning src",
        ),
        "split index": _set("config core.splitIndex true", "update-index --split-index"),
        "index version 4, untracked cache": _set(
            "config feature.manyFiles true", "update-index --index-version 4"
        ),
        "index without its checksum": _set(
            "config index.skipHash true", "update-index --force-write-index"
        ),
        "fsmonitor of git": _set("config core.fsmonitor true", "fsmonitor--daemon start"),
        "fsmonitor by a hook": _fsmonitor_hook,
        "line ends as on Windows": _set("config core.autocrlf true"),
        "settings of each work tree": _set(
            "config extensions.worktreeConfig true", "config --worktree core.sparseCheckout false"
        ),
        "no file modes, names without case": _set(
            "config core.fileMode false", "config core.ignoreCase true"
        ),
        "hooks of all repositories": _hooks_of_all_repositories,
        "branch with slashes": _set("checkout -q -b team/ann/login"),
        "commit graph, bitmaps, many packs": _set(
            "config fetch.writeCommitGraph true",
            "repack -q -a -d -b",
            "commit-graph write --reachable",
        ),
    },
    "environment": {
        "no locale": _with(LC_ALL="C", LANG="C"),
        "Turkish, in Latin-5": _with(LC_ALL="tr_TR.ISO-8859-9", LANG="tr_TR.ISO-8859-9"),
        "a clock in another zone": _with(TZ="Pacific/Kiritimati"),
        "variables of an outer git": _with(
            GIT_LITERAL_PATHSPECS="1", GIT_TRACE="0", GIT_OPTIONAL_LOCKS="0"
        ),
        "an editor and a pager that hang": _with(
            GIT_EDITOR="sleep 999", PAGER="sleep 999", GIT_PAGER="sleep 999"
        ),
        "no HOME": _without("HOME", "XDG_CONFIG_HOME"),
        "switches of Python": _with(
            PYTHONOPTIMIZE="2", PYTHONDEVMODE="1", PYTHONWARNINGS="error", PYTHONUTF8="0"
        ),
        "colours wanted, no width": _with(
            FORCE_COLOR="1", CLICOLOR_FORCE="1", COLUMNS="0", TERM="dumb"
        ),
        "settings of git by variables": _with(
            GIT_CONFIG_COUNT="2",
            GIT_CONFIG_KEY_0="core.hooksPath",
            GIT_CONFIG_VALUE_0=".git/hooks",
            GIT_CONFIG_KEY_1="user.name",
            GIT_CONFIG_VALUE_1="Eve",
        ),
        "umask 077": _masked("077"),
        "umask 002": _masked("002"),
    },
    "user": {
        "without rights": _plain_user,
        "root in a repository of another, safe.directory": _root_in_a_repository_of_another,
        "a daemon of root's beside its owner's agents": _daemon_of_root,
        "two users of a group": _two_of_a_group,
        "hooks folder read-only": _hooks_read_only,
        "root of a user namespace": _rootless,
    },
    "file system": {
        **{kind: _on(kind) for kind in IMAGES},
        "exFAT": _exfat,
        "FUSE: bindfs": _by("bindfs", "{place}/lower"),
        "FUSE: fuse-overlayfs": _by(
            "fuse-overlayfs",
            "-o",
            "lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/scratch",
        ),
        "planning tree a mount of its own": _planning_tree_elsewhere,
        "git directory a mount of its own": _git_directory_elsewhere,
        "no programs (noexec)": _no_programs,
    },
    "kernel": {
        "own process numbers, own /proc": _inside("--mount", "--pid", "--fork", "--mount-proc"),
        "own process numbers, /proc of the host": _inside("--pid", "--fork"),
        "no network, not even loopback": _inside("--net"),
        "no /proc": _inside("--mount", script="mount -t tmpfs none /proc"),
        "/tmp read-only": _inside("--mount", script=_TMP_READ_ONLY),
    },
    "network": {
        "ssh": _remote(by_ssh=True),
        "ssh, 150 ms each way": _remote(by_ssh=True, delay_s=0.15),
        "git daemon, each third connection torn": _remote(by_ssh=False, torn_each=3),
        "ssh, 150 ms, each fourth torn": _remote(by_ssh=True, delay_s=0.15, torn_each=4),
    },
}
"""Kind → where → what makes a walk there."""


def git_of(version: str) -> ArtifactPath:
    """A repository that a built git made, with that git alone; one that is too old is refused."""
    path = f"{CACHE / version / 'bin'}:{os.environ['PATH']}"
    is_old = [int(part) for part in version.split(".")[:2]] < [2, 34]
    return _refused(path) if is_old else _with(PATH=path)


def _refused(path: str) -> ArtifactPath:
    @contextmanager
    def made(ground: Ground) -> Iterator[Walk]:
        seat = _begun(_seat(ground.place, PATH=path))
        done = seat.run(str(PROGRAM), "init", "--commit")
        assert done.returncode == Exit.GIT_FAILED and "git_missing" in done.stderr, done.stderr
        raise SkipError("refused by name: git_missing, too old")
        yield

    return made


_ROOMS = ("tests/git", "tests/e2e/test_as_git_would.py", "tests/e2e/test_places.py")


def suite_rooms(version: str) -> tuple[int, str]:
    """Run the suite's git rooms with a built git; return the exit code and the last line."""
    env = {**os.environ, "PATH": f"{CACHE / version / 'bin'}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *_ROOMS]
    done = subprocess.run(
        command, cwd=PROGRAM.parents[2], env=env, capture_output=True, text=True, check=False
    )
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return done.returncode, "; ".join([done.stdout.strip().splitlines()[-1].strip("= "), *failed])
