"""Canaries: one row for each way in which a repository can name a command that git runs.

A canary that runs leaves a file of its name. `sing` is what a user would do with stock git to make
it run; the environment names the hooks' folder, and what else they need. See docs/faults.md#f57.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.repo import Repo


class Cage:
    """A repository in which canaries are planted."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self.git_dir = repo.git_dir
        self.fired = repo.root.parent / f"{repo.root.name}-fired"
        self.fired.mkdir()

    def script(self, name: str, then: str = "") -> str:
        """Return the path of a program that tells that the canary `name` ran."""
        return self.write(self.git_dir / "canaries" / name, name, then)

    def write(self, path: Path, name: str, then: str = "") -> str:
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f"#!/bin/sh\ntr '\\0' ' ' </proc/$PPID/cmdline >>{self.fired}/{name}\n{then}\n"
        )
        path.chmod(0o755)
        return str(path)

    def config(self, key: str, value: str) -> None:
        self.repo.git("config", "--add", key, value)

    def heard(self) -> dict[str, str]:
        """Return what ran each canary that sang."""
        return {path.name: path.read_text() for path in self.fired.iterdir()}

    def silence(self) -> None:
        """Forget who sang: what the user's own git does is not what is asked."""
        for path in self.fired.iterdir():
            path.unlink()

    def sang(self) -> set[str]:
        return {path.name for path in self.fired.iterdir()}


@dataclass(frozen=True, slots=True)
class Canary:
    """One way in which a repository names a command."""

    name: str
    plant: Callable[[Cage, str], None]
    """Is told the canary's name as well."""
    sing: str
    """Shell commands with stock git; `commit` stands for one that neither signs nor edits."""


def hook(cage: Cage, name: str) -> None:
    cage.write(cage.git_dir / "hooks" / name, name)


def setting(key: str, then: str = "", before: str = "") -> Callable[[Cage, str], None]:
    def plant(cage: Cage, name: str) -> None:
        cage.config(key, before + cage.script(name, then))

    return plant


def alias(cage: Cage, name: str) -> None:
    for verb in (
        name,
        "log",
        "cat-file",
        "update-ref",
        "update-index",
        "ls-files",
        "rev-parse",
        "check-attr",
    ):
        cage.config(f"alias.{verb}", f"!{cage.script(name)}")


def included(cage: Cage, name: str) -> None:
    """Let a file of the work tree, which any pull may change, be part of the configuration."""
    cage.repo.file(
        "settings.inc", f'[core]\n\tgitProxy = {cage.script(name)}\n[alias]\n\tinc = "!:"\n'
    )
    cage.config("include.path", "../settings.inc")


def insteadof(cage: Cage, name: str) -> None:
    cage.config("protocol.ext.allow", "always")
    cage.config(f"url.ext::{cage.script(name)} .insteadOf", "canary:")


def promisor(cage: Cage, name: str) -> None:
    """Let every object that is missing be fetched by a command."""
    cage.config("core.repositoryFormatVersion", "1")
    cage.config("extensions.partialClone", "evil")
    cage.config("remote.evil.promisor", "true")
    cage.config("remote.evil.url", f"ext::{cage.script(name)} %S")


def uploadpack(cage: Cage, name: str) -> None:
    cage.repo.git("init", "-q", "--bare", "../sink.git", ok=(0,))
    cage.config("remote.origin.url", str(cage.repo.root.parent / "sink.git"))
    cage.config("remote.origin.uploadpack", cage.script(name))


def submodule_update(cage: Cage, name: str) -> None:
    cage.config("submodule.sub.update", f"!{cage.script(name)}")
    cage.config("submodule.sub.url", str(cage.repo.root / "sub"))


def submodule_monitor(cage: Cage, name: str) -> None:
    """Let a repository within the repository name the command: git asks it when it looks at the outer one."""
    for words in (
        ("init", "-q", "sub"), ("-C", "sub", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x"),
        ("config", "-f", ".gitmodules", "submodule.sub.path", "sub"), ("config", "-f", ".gitmodules", "submodule.sub.url", "./sub"),
        ("add", ".gitmodules"), ("-c", "advice.addEmbeddedRepo=false", "add", "sub"),
        ("commit", "-q", "-m", "chore: a part of its own"), ("-C", "sub", "config", "core.fsmonitor", cage.script(name)),
    ):  # fmt: skip
        cage.repo.git(*words)


def signed(cage: Cage, name: str) -> None:
    """Let the last commit have a signature that somebody must check."""
    cage.config("gpg.program", cage.script(name))
    cage.config("log.showSignature", "true")
    cage.config("commit.gpgSign", "true")
    tree = cage.repo.git("rev-parse", "HEAD^{tree}").strip()
    text = (
        f"tree {tree}\nparent {cage.repo.git('rev-parse', 'HEAD').strip()}\nauthor x <x@x> 1700000000 +0000\n"
        "committer x <x@x> 1700000000 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n"
        "chore: signed\n"
    )
    oid = cage.repo.git("hash-object", "-t", "commit", "-w", "--stdin", given=text).strip()
    cage.repo.git("update-ref", "HEAD", oid)


def housekeeping(cage: Cage, name: str) -> None:
    hook(cage, name)
    cage.config("gc.auto", "1")
    cage.config("gc.autoPackLimit", "1")


def alternate(cage: Cage, name: str) -> None:
    cage.config("core.alternateRefsCommand", cage.script(name))
    other = cage.repo.root.parent / f"{cage.repo.root.name}-other.git"
    cage.repo.git("clone", "-q", "--bare", ".", str(other))
    (cage.git_dir / "objects/info").mkdir(exist_ok=True)
    (cage.git_dir / "objects/info/alternates").write_text(f"{other}/objects\n")


COMMIT = "git commit -q --no-gpg-sign --allow-empty -m x"
PTY = "TERM=xterm python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])'"
CANARIES = (
    Canary(
        "promisor",
        promisor,
        "git cat-file -p 1234567890123456789012345678901234567890; "
        "git config --remove-section extensions; git config --remove-section remote.evil",
    ),
    Canary("pre-commit", hook, COMMIT),
    Canary("prepare-commit-msg", hook, COMMIT),
    Canary("commit-msg", hook, COMMIT),
    Canary("post-commit", hook, COMMIT),
    Canary("post-rewrite", hook, f"{COMMIT} --amend"),
    Canary("post-index-change", hook, "echo x >added && git add added"),
    Canary("reference-transaction", hook, "git update-ref refs/heads/another HEAD"),
    Canary("post-checkout", hook, "git checkout -q -b elsewhere"),
    Canary("post-merge", hook, f"git checkout -q -b ahead && {COMMIT} && git checkout -q - && git merge -q ahead"),
    Canary("pre-rebase", hook, "git rebase -q -f --no-gpg-sign HEAD~1; git rebase --quit"),
    Canary("pre-push", hook, "git push -q ../sink.git HEAD:refs/heads/there"),
    Canary("pre-auto-gc", housekeeping, f"git repack -q; {COMMIT}; git repack -q; git gc --auto -q"),
    Canary("core.fsmonitor", setting("core.fsmonitor"), "git status"),
    Canary("core.pager", setting("core.pager"), f"{PTY} git log"),
    Canary("core.editor", setting("core.editor"), "git commit -q --allow-empty --no-gpg-sign"),
    Canary("sequence.editor", setting("sequence.editor"), "git rebase -q -i --no-gpg-sign HEAD~1; git rebase --quit"),
    Canary("core.sshCommand", setting("core.sshCommand"), "git ls-remote ssh://nowhere.invalid/x"),
    Canary("core.askPass", setting("core.askPass"), "printf 'protocol=https\\nhost=x\\n\\n' | git credential fill"),
    Canary("credential.helper", setting("credential.helper"), "printf 'protocol=https\\nhost=x\\n\\n' | git credential fill"),
    Canary("ssh-signing-key", setting("gpg.ssh.defaultKeyCommand"), "git -c gpg.format=ssh commit -S --allow-empty -m x"),
    Canary("x509-program", setting("gpg.x509.program"), "git -c gpg.format=x509 commit -S --allow-empty -m x"),
    Canary("diff.external", setting("diff.external"), "echo x >>src/file5.py && git diff"),
    Canary("diff-driver", setting("diff.canary.command"), "echo x >>src/file2.py && git diff"),
    Canary("textconv", setting("diff.text.textconv"), "echo x >>src/file3.py && git diff --no-ext-diff"),
    Canary("filter-clean", setting("filter.canary.clean", "cat"), "echo x >>README.md && git add README.md"),
    Canary("filter-smudge", setting("filter.canary.smudge", "cat"), "rm README.md && git checkout HEAD -- README.md"),
    Canary("filter-process", setting("filter.process.process"), "echo x >>src/file1.py && git add src/file1.py; git config --unset filter.process.process"),
    Canary(
        "merge-driver",
        setting("merge.canary.driver"),
        f"git checkout -q -b left && echo x >src/file4.py && {COMMIT} -a && git checkout -q -b right HEAD~1 && "
        f"echo y >src/file4.py && {COMMIT} -a && git merge left",
    ),
    Canary("diff-filter", setting("interactive.diffFilter", "cat"), f"echo x >>src/file6.py && echo q | {PTY} git add -p src/file6.py"),
    Canary("trailer-command", setting("trailer.sign.cmd"), "echo x | git interpret-trailers --trailer sign=x"),
    Canary("difftool", setting("difftool.x.cmd"), "echo x >>src/file6.py && git difftool -y -t x"),
    Canary("alias", alias, "git alias"),
    Canary("include", included, "git ls-remote git://nowhere.invalid/x"),
    Canary("insteadof", insteadof, "git ls-remote canary:x"),
    Canary("uploadpack", uploadpack, "git fetch -q origin"),
    Canary("submodule-update", submodule_update, "git -c protocol.file.allow=always submodule update --init --force"),
    Canary("gpg-program", signed, "git log"),
    Canary("alternate-refs", alternate, "git fetch -q --upload-pack=git-upload-pack ../repo-other.git"),
    Canary("submodule-fsmonitor", submodule_monitor, "git status"),
)  # fmt: skip
"""In the order in which they sing; planted the other way round: the last ones still need a git that works."""

ATTRIBUTES = """\
*.jsonl diff=text merge=canary
README.md filter=canary
src/file1.py filter=process
src/file2.py diff=canary
src/file3.py diff=text
src/file4.py merge=canary
critique.jsonl filter=canary
"""


def plant(repo: Repo) -> Cage:
    """Plant all canaries, and the attributes that name their drivers."""
    cage = Cage(repo)
    for canary in reversed(CANARIES):
        canary.plant(cage, canary.name)
    repo.file(".gitattributes", ATTRIBUTES)
    (cage.git_dir / "info").mkdir(exist_ok=True)
    (cage.git_dir / "info/attributes").write_text(ATTRIBUTES)
    cage.silence()
    return cage


def by_worktree_config(repo: Repo, names: tuple[str, ...]) -> Cage:
    """Let only the configuration of this work tree name a folder of hooks, and a monitor."""
    cage = Cage(repo)
    hooks = repo.root / "tools/hooks"
    hooks.parent.mkdir()
    for name in names:
        cage.write(hooks / name, name)
    repo.git("config", "extensions.worktreeConfig", "true")
    for key, value in (
        ("core.hooksPath", "tools/hooks"),
        ("core.fsmonitor", cage.script("core.fsmonitor")),
    ):
        repo.git("config", "--worktree", key, value)
    cage.silence()
    return cage
