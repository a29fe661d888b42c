"""Canaries: one row for each way in which a repository can name a command that git runs.

A canary that runs leaves a file of its name. `sing` is what a user would do with stock git to make
it run; the environment names the hooks' folder, and what else they need. See docs/dev/faults.md#f57.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.repo import Repo


class Cage:
    """A repository in which canaries are planted."""

    def __init__(self, repo: Repo, fired: Path | None = None) -> None:
        """`fired`: where each canary that runs leaves its name."""
        self.repo = repo
        self.git_dir = repo.git_dir
        self.fired = fired or repo.root.parent / f"{repo.root.name}-fired"
        self.fired.mkdir(exist_ok=True)

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
        f"{name}.inc",
        f'[core]\n\tgitProxy = {cage.script(name)} for {name}.invalid\n[alias]\n\tinc = "!:"\n',
    )
    key = "include.path" if name == "include" else f"includeIf.gitdir:{cage.git_dir}.path"
    cage.config(key, f"../{name}.inc")


def proxied(cage: Cage, name: str) -> None:
    cage.config("core.gitProxy", f"{cage.script(name)} for proxied.invalid")


def received(cage: Cage, name: str) -> None:
    """Let a hook of this repository run when somebody pushes into it."""
    hook(cage, name)
    cage.repo.git("config", "receive.denyCurrentBranch", "updateInstead")
    cage.repo.git("config", "receive.procReceiveRefs", "refs/proc")


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
CONFLICT = (
    "git reset -q --hard; git checkout -q -f -b $(basename {0} .py)-left && echo left >{0} && "
    f"{COMMIT} -a && git checkout -q -b $(basename {{0}} .py)-right HEAD~1 && echo right >{{0}} && "
    f"{COMMIT} -a && git merge -q --no-gpg-sign $(basename {{0}} .py)-left"
)
MAIL = (
    f"n=patched$$; echo x >$n && git add $n && {COMMIT} && git format-patch -1 --no-signature --stdout "
    ">../patch.mbox && git reset -q --hard HEAD~1 && git am -q --no-gpg-sign ../patch.mbox"
)
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
    Canary("include", included, "git ls-remote git://include.invalid/x"),
    Canary("includeif", included, "git ls-remote git://includeif.invalid/x"),
    Canary("core.gitProxy", proxied, "git ls-remote git://proxied.invalid/x"),
    Canary("insteadof", insteadof, "git ls-remote canary:x"),
    Canary("uploadpack", uploadpack, "git fetch -q origin"),
    Canary("submodule-update", submodule_update, "git -c protocol.file.allow=always submodule update --init --force"),
    Canary("gpg-program", signed, "git log"),
    Canary("alternate-refs", alternate, "git fetch -q --upload-pack=git-upload-pack ../repo-other.git"),
    Canary("submodule-fsmonitor", submodule_monitor, "git status"),
    Canary("remote.receivepack", setting("remote.origin.receivepack"), "git push -q origin HEAD:refs/heads/there-too"),
    Canary("credential.url.helper", setting("credential.https://helped.invalid.helper"), "printf 'protocol=https\\nhost=helped.invalid\\n\\n' | git credential fill"),
    Canary("pager.show", setting("pager.show"), f"{PTY} git show"),
    Canary("trailer.command", setting("trailer.told.command"), "echo x | git interpret-trailers --trailer told=x"),
    Canary("tar.command", setting("tar.canary.command"), "git archive --format=canary HEAD"),
    Canary("difftool.path", setting("difftool.meld.path"), "echo y >>src/file6.py && git difftool -y -t meld"),
    Canary("mergetool.cmd", setting("mergetool.y.cmd"), f"{CONFLICT.format('src/file6.py')}; git mergetool -y -t y; git reset -q --hard"),
    Canary("mergetool.path", setting("mergetool.meld.path"), f"{CONFLICT.format('src/file5.py')}; git mergetool -y -t meld; git reset -q --hard"),
    Canary("browser.cmd", setting("browser.canary.cmd"), "git web--browse -t canary http://nowhere.invalid"),
    Canary("browser.path", setting("browser.firefox.path"), "git web--browse -t firefox http://nowhere.invalid"),
    Canary("man.cmd", setting("man.canary.cmd"), "git -c man.viewer=canary help -m log"),
    Canary("man.path", setting("man.man.path"), "git -c man.viewer=man help -m log"),
    Canary("imap.tunnel", setting("imap.tunnel"), r"printf 'From x Mon Sep 17 00:00:00 2001\nFrom: x <x@x>\nDate: x\nSubject: x\n\nx\n' | git -c imap.folder=x imap-send"),
    Canary("instaweb.httpd", setting("instaweb.httpd"), "git instaweb --start"),
    Canary("pre-merge-commit", hook, f"git checkout -q -f -b beside-it && {COMMIT} && git checkout -q - && {COMMIT} && git merge -q --no-ff --no-edit --no-gpg-sign beside-it"),
    *(Canary(name, hook, MAIL) for name in ("applypatch-msg", "pre-applypatch", "post-applypatch")),
    *(Canary(name, received, f"git push -q . HEAD:refs/heads/pushed-{name}") for name in ("pre-receive", "update", "post-receive", "post-update")),
    Canary("proc-receive", received, "git push -q . HEAD:refs/proc/x"),
    Canary("push-to-checkout", received, "tip=$(git rev-parse HEAD); git checkout -q -f -b pushed HEAD~1 && git push -q . $tip:refs/heads/pushed"),
)  # fmt: skip
"""In the order in which they sing; planted the other way round: the last ones still need a git that works."""

SILENT_HOOKS = {
    "fsmonitor-watchman": "git runs it only where core.fsmonitor names it",
    "sendemail-validate": "git send-email runs it, which is not installed everywhere",
    "p4-changelist": "git p4 runs it",
    "p4-prepare-changelist": "git p4 runs it",
    "p4-post-changelist": "git p4 runs it",
    "p4-pre-submit": "git p4 runs it",
}
"""The other names of githooks(5), which no command of this git runs: planted as well."""

KEYS: dict[str, str] = {
    r"alias\.": "alias",
    r"browser\..*\.cmd": "browser.cmd",
    r"browser\..*\.path": "browser.path",
    r"core\.alternateRefsCommand": "alternate-refs",
    r"core\.askPass": "core.askPass",
    r"core\.editor": "core.editor",
    r"core\.fsmonitor": "core.fsmonitor",
    r"core\.gitProxy": "core.gitProxy",
    r"core\.hooksPath": "(the configuration of one work tree names it)",
    r"core\.pager": "core.pager",
    r"core\.sshCommand": "core.sshCommand",
    r"credential\.helper": "credential.helper",
    r"credential\.<url>": "credential.url.helper",
    r"diff\..*\.command": "diff-driver",
    r"diff\..*\.textconv": "textconv",
    r"diff\.external": "diff.external",
    r"difftool\..*\.cmd": "difftool",
    r"difftool\..*\.path": "difftool.path",
    r"filter\..*\.clean": "filter-clean",
    r"filter\..*\.smudge": "filter-smudge",
    r"gpg\.<format>\.program": "x509-program",
    r"gpg\.program": "gpg-program",
    r"gpg\.ssh\.defaultKeyCommand": "ssh-signing-key",
    r"imap\.tunnel": "imap.tunnel",
    r"include\.path": "include",
    r"includeIf\.": "includeif",
    r"instaweb\.httpd": "instaweb.httpd",
    r"interactive\.diffFilter": "diff-filter",
    r"man\..*\.cmd": "man.cmd",
    r"man\..*\.path": "man.path",
    r"merge\..*\.driver": "merge-driver",
    r"mergetool\..*\.cmd": "mergetool.cmd",
    r"mergetool\..*\.path": "mergetool.path",
    r"pager\.<cmd>": "pager.show",
    r"remote\..*\.receivepack": "remote.receivepack",
    r"remote\..*\.uploadpack": "uploadpack",
    r"remote\..*\.url": "promisor",
    r"sequence\.editor": "sequence.editor",
    r"submodule\..*\.update": "submodule-update",
    r"tar\..*\.command": "tar.command",
    r"trailer\..*\.command": "trailer.command",
    r"trailer\..*\.cmd": "trailer-command",
    r"url\..*nsteadOf": "insteadof",
}
"""Pattern of a key that names a program → the canary that says whether git ran it."""

NO_PROGRAM: dict[str, str] = {
    r"advice\..*|color\.pager|core\.quotePath|clone\.filterSubmodules|commitGraph\..*": "no program",
    r"commit\.template|fsck\..*|receive\.fsck.*|http\.ssl.*|http\.proxySSL.*|sendemail\.smtpssl.*": "a file, or a switch",
    r"completion\.commands|rebase\.abbreviateCommands|notes\.rewrite.*|credential\.useHttpPath": "no program",
    r"core\.fsmonitorHookVersion|fsmonitor\..*": "says how the monitor is asked",
    r"diff\..*\.(binary|cachetextconv|wordRegex|xfuncname)|merge\..*\.(name|recursive)": "about a driver",
    r"diff\.(gui)?tool|merge\.(gui)?tool|help\.browser|web\.browser|instaweb\.(browser|modulePath)|man\.viewer": "the name of a tool, whose program another key names",
    r"difftool\.[^.]*|mergetool\.[^.]*|mergetool\.<tool>\.(hideResolved|trustExitCode)|mergetool\.(meld|vimdiff)\..*": "a switch",
    r"gitcvs\..*|gitweb\..*|gui\..*|guitool\..*|sendemail\..*": "of programs beside git, which are installed apart",
    r"help\.htmlPath": "a folder",
    r"clean\.requireForce|column\.clean|commit\.cleanup|status\.relativePaths|grep\..*|sequencer\..*|.*\.relative.*": "a switch",
    r"http\.(proxy.*|curloptResolve|<url>.*)|remote\..*\.proxy.*": "a place, no program: see `things.py`",
    r"init\.templateDir": "git init reads it of the user's configuration alone",
    r"push\.useForceIfIncludes|stash\..*|transfer\..*|remote\..*\.partialclonefilter": "no program",
    r"remote\..*\.pushurl|submodule\..*\.url": "a place: as remote.*.url",
    r"remote\..*\.vcs": "names a helper that has to lie on the user's own path",
    r"uploadpack\.packObjectsHook": "git reads it of the user's configuration alone",
    r"uploadpack(filter)?\..*": "no program",
}
"""Pattern of the other keys whose names sound like one → why no program of the repository comes of it."""

ATTRIBUTES = """\
*.jsonl diff=text merge=canary
README.md filter=canary
src/file1.py filter=process
src/file2.py diff=canary
src/file3.py diff=text
src/file4.py merge=canary
critique.jsonl filter=canary
"""


def plant(repo: Repo, fired: Path | None = None) -> Cage:
    """Plant all canaries, and the attributes that name their drivers."""
    cage = Cage(repo, fired)
    for canary in reversed(CANARIES):
        canary.plant(cage, canary.name)
    for name in SILENT_HOOKS:
        hook(cage, name)
    repo.file(".gitattributes", ATTRIBUTES)
    (cage.git_dir / "info").mkdir(exist_ok=True)
    (cage.git_dir / "info/attributes").write_text(ATTRIBUTES)
    cage.silence()
    return cage


def by_worktree_config(repo: Repo, names: tuple[str, ...], fired: Path | None = None) -> Cage:
    """Let only the configuration of this work tree name a folder of hooks, and a monitor."""
    cage = Cage(repo, fired)
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
