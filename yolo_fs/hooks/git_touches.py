"""Files that a git command reads, changes, takes in or destroys. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from yolo_fs.hooks.effects import (
    Destruction,
    Effect,
    NewTree,
    Seen,
    StagingMode,
    Touch,
    Unchecked,
    Undecided,
    touch_all,
    touch_deep,
    touch_named,
    touch_of,
)
from yolo_fs.hooks.outputs import find_outputs
from yolo_fs.hooks.program import VALUED, Program, key_by_name
from yolo_fs.hooks.program_touches import copies, touch_patched, touches_nothing
from yolo_fs.hooks.shell import Word

_PATHSPEC_MAGIC = re.compile(r":(?:\([a-z,]*\)|/)")


def of_git(program: Program) -> Seen:
    """Yield what a git command does, the options before its verb included."""
    words = program.arguments
    set_before = [word.text.partition("=") for word in program.command.environment]
    folder = next((value for name, _, value in set_before if name == "GIT_WORK_TREE"), "")
    has_template = any(name == "GIT_TEMPLATE_DIR" for name, _, _ in set_before)
    is_unchecked, at = False, 0
    while at < len(words) and words[at].text.startswith("-"):
        option, is_joined, value = words[at].text.partition("=")
        at += 1
        if option in VALUED["git"].split() and at < len(words):
            if not is_joined:
                value, at = words[at].text, at + 1
            folder = value if option in ("-C", "--work-tree") else folder
            if option == "-c":
                yield from touch_named(value.partition("=")[2])
                has_template = has_template or value.lower().startswith("init.templatedir=")
        is_unchecked = is_unchecked or value.lower().startswith("core.hookspath=")
    if at == len(words):
        return
    verb = words[at].text
    program = Program(f"git {verb}", words[at + 1 :], program.command)
    if is_unchecked or _skips_hooks(program) or _moves_hooks(program):
        yield Unchecked(program.line)
    if verb in _GIT_DESTROYS and (destruction := _GIT_DESTROYS[verb](program)):
        yield destruction.below(folder)
    if verb == "init" and (has_template or program.has("--template")):
        made = next(iter(program.operands()), Word(""))
        yield from touch_of(Word(posixpath.join(folder, made.marked, ".git")), Effect.FILL)
    given = chain(
        _git_options(program), _GIT_VERBS.get(verb, touches_nothing)(program), find_outputs(program)
    )
    for seen in given:
        yield (
            replace(seen, path=posixpath.join(folder, seen.path))
            if isinstance(seen, Touch | NewTree)
            else seen
        )


def _paths_named_by(program: Program) -> tuple[str, ...]:
    """Return the paths that a git command names: the words after `--`, or else its operands."""
    paths = _words_behind_dashes(program)
    words = program.operands() if paths is None else paths
    return tuple(word.text for word in words)


def _reset_destroys(program: Program) -> Destruction | None:
    return Destruction(program.line) if program.has("--hard", "--merge", "--keep") else None


def _clean_destroys(program: Program) -> Destruction | None:
    if program.has("-n", "--dry-run"):
        return None
    return Destruction(
        program.line, _paths_named_by(program) or (".",), tracked=False, untracked=True
    )


def _checkout_destroys(program: Program) -> Destruction | None:
    if (paths := _words_behind_dashes(program)) is not None:
        return Destruction(program.line, tuple(word.text for word in paths))
    if program.has("-f", "--force", "--merge", "-m", "--discard-changes"):
        return Destruction(program.line)
    if program.name == "git switch" or program.has("-b", "-B", "--orphan", "-c", "-C"):
        return None
    words = program.operands()
    return Destruction(program.line, tuple(word.text for word in words)) if words else None


def _restore_destroys(program: Program) -> Destruction | None:
    if program.has("--staged", "-S") and not program.has("--worktree", "-W"):
        return None
    return Destruction(program.line, _paths_named_by(program))


def _stash_destroys(program: Program) -> Destruction | None:
    verb = next((word.text for word in program.operands()), "push")
    if verb not in ("push", "save", "-"):
        return None
    return Destruction(
        program.line, untracked=program.has("-u", "-a", "--include-untracked", "--all")
    )


def _rm_destroys(program: Program) -> Destruction | None:
    is_sure = program.has("-f", "--force") and not program.has("--cached", "-n", "--dry-run")
    return Destruction(program.line, _paths_named_by(program)) if is_sure else None


_GIT_DESTROYS = key_by_name(
    {
        "rm": _rm_destroys,
        "reset": _reset_destroys,
        "clean": _clean_destroys,
        "checkout switch": _checkout_destroys,
        "restore": _restore_destroys,
        "stash": _stash_destroys,
    }
)


_TAKES_A_VALUE = re.compile(
    r"-[aeiopqsvz]*[mFCct]|--(?:message|file|author|date|template|trailer|fixup|squash)"
)


def _skips_hooks(program: Program) -> bool:
    before = ""
    for option in (word.text for word in program.arguments):
        if option == "--":
            return False
        is_value = _TAKES_A_VALUE.fullmatch(before) is not None
        short = program.name == "git commit" and re.match(r"-[aeiopqsvz]*n", option)
        if not is_value and (option in _NO_VERIFY or short):
            return True
        before = "" if is_value else option
    return False


_NO_VERIFY = ("--no-verify", "--no-verif", "--no-veri")
"""git accepts abbreviated options."""


def _moves_hooks(program: Program) -> bool:
    """Return whether the command permanently changes where git looks for its hooks."""
    if program.name != "git config":
        return False
    names = [word.text.lower() for word in program.operands()]
    is_dropped = program.has("--unset", "--unset-all") or names[:1] == ["unset"]
    parts = ("--remove-section", "--rename-section", "remove-section", "rename-section")
    is_whole = any(word.text in parts for word in program.arguments) and "core" in names
    return is_whole or "core.hookspath" in (names if is_dropped else names[:-1])


def _touch_pathspecs(
    words: Sequence[Word], effect: Effect, must_exist: bool = False
) -> Iterator[Touch]:
    for word in words:
        spec = Word(_PATHSPEC_MAGIC.sub("", word.marked, count=1))
        if not word.text.startswith((":!", ":^", ":(exclude)")):
            yield from touch_of(spec, effect, must_exist=must_exist)


def _words_behind_dashes(program: Program) -> list[Word] | None:
    texts = [word.text for word in program.arguments]
    return list(program.arguments[texts.index("--") + 1 :]) if "--" in texts else None


def _examine_git_checkout(program: Program) -> Seen:
    paths = _words_behind_dashes(program)
    if paths is not None:
        yield from _touch_pathspecs(paths, Effect.WRITE)
        return
    if program.has("-b", "-B", "--orphan", "--detach", "-t", "--track"):
        return
    first, *others = program.operands() or [Word("")]
    yield from _touch_pathspecs(others, Effect.WRITE)
    is_no_branch = re.search(r"(?:^|/)\.", first.text) is not None
    yield from _touch_pathspecs([first], Effect.WRITE, must_exist=not is_no_branch)


def _examine_git_restore(program: Program) -> Seen:
    if program.has("--worktree", "-W") or not program.has("--staged", "-S"):
        sources = {value.marked for value in program.values("-s", "--source")}
        operands = _words_behind_dashes(program) or program.operands()
        yield from _touch_pathspecs(
            [word for word in operands if word.marked not in sources], Effect.WRITE
        )


def _examine_git_rm(program: Program) -> Seen:
    effect = Effect.ALTER if program.has("--cached") else Effect.REMOVE
    yield from _touch_pathspecs(program.operands(), effect)


def _examine_git_mv(program: Program) -> Seen:
    yield from copies(Program("mv", program.arguments, program.command))


def _examine_git_clean(program: Program) -> Seen:
    if not program.has("-n", "--dry-run"):
        yield from _touch_pathspecs(program.operands(), Effect.REMOVE)
        yield Undecided(f"{program.name}, which removes what is in no commit")


def _git_shows(program: Program) -> Seen:
    """Content of files of a commit, as `REVISION:PATH`, or behind `--`."""
    for word in program.operands():
        if ":" in word.marked and not word.text.startswith(":"):
            yield from touch_of(Word(word.marked.partition(":")[2]), Effect.READ)
    if program.name == "git log" and not program.has("-p", "-u", "--patch", "-L", "-c", "--cc"):
        return
    behind = _words_behind_dashes(program)
    operands = program.operands()[1:] if program.name == "git grep" else program.operands()
    for seen in program.values("-L"):
        yield from touch_of(Word(seen.marked.rpartition(":")[2]), Effect.READ, must_exist=True)
    paths = behind if behind is not None else operands
    for touch in _touch_pathspecs(paths, Effect.READ, must_exist=program.name != "git grep"):
        yield replace(touch, is_deep=program.name == "git grep")


def _examine_git_archive(program: Program) -> Seen:
    yield from touch_deep(program.operands()[1:])


def _git_reads(program: Program) -> Seen:
    """A file whose content git shows or keeps, without any commit."""
    is_set = program.has("--unset", "--add", "--replace-all", "-e", "--edit")
    is_read = program.has("--get", "--get-all", "--get-regexp", "-l", "--list")
    is_set = is_set or (len(program.operands()) - len(program.values("-f")) > 1 and not is_read)
    effect = Effect.WRITE if is_set and program.name == "git config" else Effect.READ
    yield from touch_all(program.values("-f", "--file"), effect)
    if program.name == "git hash-object":
        yield from touch_all(program.operands(), Effect.READ)
    else:
        yield from chain.from_iterable(touch_named(word.text) for word in program.operands())


def _git_options(program: Program) -> Seen:
    """Files in the values of options that git shows, or keeps as a message."""
    options = ["--file", "--template", "--add-file", "--contents", "--pathspec-from-file"]
    if program.name != "git log":
        options += ["-F", "-t"]
    if program.name == "git grep":
        options += ["-f"]
    for word in program.values(*options):
        yield from touch_named(word.text)


def _git_stages(program: Program) -> Seen:
    """Files whose content git takes into the repository."""
    paths = _words_behind_dashes(program)
    words = program.operands() if paths is None else [*program.operands(), *paths]
    is_add = program.name in ("git add", "git stage")
    if is_add and not words and program.has("-A", "--all", "--no-ignore-removal"):
        words = [Word(".")]
    words = [Word(".") if _PATHSPEC_MAGIC.fullmatch(word.text) else word for word in words]
    is_forced = is_add and program.has("-f", "--force")
    staged = StagingMode.FORCED if is_forced else StagingMode.UNIGNORED
    for touch in _touch_pathspecs(words, Effect.READ, must_exist=True):
        yield replace(touch, staged=staged)


def _git_makes_tree(program: Program) -> Seen:
    verb, *words = program.operands() or [Word("")]
    if verb.text == "add":
        yield from (NewTree(word.text) for word in words)
    yield from _git_makes_repository(program)


def _git_makes_repository(program: Program) -> Seen:
    """A repository within the planning tree, where nobody would look for one."""
    folders = program.values("--prefix", "-P", "--separate-git-dir")
    for word in (*program.operands(), *folders):
        above, tree, below = word.marked.partition(".yolo-planning")
        if below:
            yield from touch_of(Word(above + tree), Effect.FILL)


def _git_overwrites(program: Program) -> Seen:
    """The work tree changes depending on the content of a commit or a patch."""
    if program.name in ("git apply", "git am"):
        yield from touch_patched(program)
    if program.name == "git reset" and not program.has("--hard", "--merge", "--keep"):
        return
    if (
        program.name == "git stash"
        and program.operands()[:1]
        and program.operands()[0].text in ("list", "show")
    ):
        return
    yield Undecided(program.line)


_GIT_VERBS = key_by_name(
    {
        "checkout": _examine_git_checkout,
        "restore": _examine_git_restore,
        "rm": _examine_git_rm,
        "mv": _examine_git_mv,
        "clean": _examine_git_clean,
        "show diff blame cat-file grep log whatchanged difftool format-patch": _git_shows,
        "archive": _examine_git_archive,
        "config hash-object": _git_reads,
        "add stage commit update-index": _git_stages,
        "worktree": _git_makes_tree,
        "clone init submodule subtree": _git_makes_repository,
        "reset stash apply am checkout-index read-tree": _git_overwrites,
    }
)
