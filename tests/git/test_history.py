"""The log and the reflog are read whole, whatever the user has configured. See docs/dev/faults.md#f04,
#f05 and #f28.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from random import Random, randrange

import pytest

from tests.git.conftest import NEEDS_REF_FILES, PLAN, Engine, Engines, Make, User
from tests.support.objects import unpack
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git import history
from yolo_fs.git.commit import CommitRequest
from yolo_fs.git.history import (
    Abandoned,
    LoggedCommit,
    abandoned,
    log,
    log_of_line,
    log_parents_first,
    moves_of,
    refuse_torn,
)
from yolo_fs.git.repository import Repository

LINE = '{"p":"01"}\n'
MAIN = "refs/heads/main"
TRAILERS = (
    ("Yolo-Artifact", "plan"),
    ("Yolo-Phase", "01-auth"),
    ("Yolo-Schema", "artifact/plan/1"),
)


def put(one: Engine, path: str = PLAN, data: str = LINE, subject: str = "docs(01): plan") -> str:
    commit = one.commit(CommitRequest(path, data.encode(), subject, TRAILERS))[0].commit
    assert commit
    return commit


def test_our_commit_is_told_with_its_trailers_and_its_one_path(user: User, engine: Engines) -> None:
    one, base = engine(user), user.tip()
    tip = put(one)
    (commit,) = log(one.repository, f"{base}..HEAD")
    assert commit == LoggedCommit(
        tip, (base,), commit.at_s, "docs(01): plan", TRAILERS, (("A", PLAN),)
    )
    assert commit.is_ours and commit.at_s == int(user.text("log", "-1", "--format=%ct"))


def test_the_log_says_what_git_says_newest_first(user: User, engine: Engines) -> None:
    one = engine(user)
    for number in range(5):
        user.commit_file(f"f{number}", "x\n", f"user {number}")
        put(one, data=LINE * (number + 1))
    told = list(log(one.repository, "HEAD"))
    assert [commit.oid for commit in told] == user.text("rev-list", "HEAD").split()
    assert [commit.is_ours for commit in told] == [True, False] * 5 + [False]
    assert [commit.oid for commit in log(one.repository, "HEAD", limit=3)] == [
        commit.oid for commit in told[:3]
    ]


def test_every_kind_of_change_is_told(user: User, engine: Engines) -> None:
    for name in ("modified", "deleted", "typed", "A", "M"):
        user.add(name, "x\n")
    user.commit()
    user.add("modified", "y\n")
    user.git("rm", "--quiet", "deleted")
    (user.root / "typed").unlink()
    (user.root / "typed").symlink_to("x")
    user.git("mv", "A", "D")
    user.git("add", "--all")
    user.commit()
    (commit,) = log(engine(user).repository, "HEAD", limit=1)
    assert set(commit.changes) == {
        ("M", "modified"),
        ("D", "deleted"),
        ("T", "typed"),
        ("D", "A"),
        ("A", "D"),
    }


@pytest.mark.parametrize(
    "name", ["ünï", "a b", "new\nline", 'quo"te', "tab\tx", "A", "M", "-x", ":(top)x", "f" * 40]
)
def test_odd_names_are_told_as_they_are(user: User, engine: Engines, name: str) -> None:
    user.write(name, "x\n")
    user.git("--literal-pathspecs", "add", "--", name)
    user.commit()
    put(engine(user))
    told = list(log(engine(user).repository, "HEAD"))
    assert told[1].changes == (("A", name),) and len(told) == 3


@pytest.mark.parametrize(
    "message",
    [
        "",
        "\n\n",
        "one\ntwo\n\nbody\n",
        "x\n\nYolo-Artifact:\n",
        "ü €\n",
        "A\n",
        "x\n\nKey: a: b\n more\n",
    ],
)
def test_odd_messages_do_not_confuse_the_reader(user: User, engine: Engines, message: str) -> None:
    tree, base = user.tip("HEAD^{tree}"), user.tip()
    odd = user.text("commit-tree", tree, "-p", base, given=message.encode())
    user.git("update-ref", "HEAD", odd)
    one = engine(user)
    tip = put(one)
    told = list(log(one.repository, "HEAD"))
    assert [commit.oid for commit in told] == [tip, odd, base]
    assert told[1].subject == user.text("log", "-1", "--format=%s", odd) and told[1].changes == ()


def test_a_merge_is_told_against_its_first_parent(user: User, engine: Engines) -> None:
    user.git("checkout", "--quiet", "-b", "side")
    user.commit_file("side", "x\n")
    user.git("checkout", "--quiet", "main")
    user.commit_file("main", "x\n")
    user.git("merge", "--quiet", "--no-edit", "side")
    told = list(log(engine(user).repository, "HEAD"))
    assert told[0].changes == (("A", "side"),) and len(told[0].parents) == 2
    assert [commit.oid for commit in told] == user.text("rev-list", "HEAD").split()


def test_a_shallow_clone_has_the_log_that_it_has(user: User, engine: Engines) -> None:
    for number in range(3):
        user.commit_file(f"f{number}", "x\n")
    user.git("clone", "--quiet", "--depth=2", f"file://{user.root}", "../shallow")
    assert len(list(log(engine(user.root.parent / "shallow").repository, "HEAD"))) == 2


@pytest.mark.parametrize(
    "settings",
    [
        {"log.showSignature": "true"},
        {"log.date": "relative", "log.decorate": "full", "log.abbrevCommit": "true"},
        {"format.pretty": "oneline", "log.showRoot": "false", "log.mailmap": "true"},
        {"color.ui": "always", "color.diff": "always"},
        {
            "diff.renames": "copies",
            "diff.noprefix": "true",
            "diff.relative": "true",
            "diff.mnemonicPrefix": "true",
        },
        {"core.quotePath": "true", "core.commentChar": "Y"},
        {"i18n.logOutputEncoding": "ISO-8859-1"},
        {"trailer.separators": "=#"},
        {"trailer.yolo-artifact.key": "Other: "},
        {"log.diffMerges": "separate", "log.follow": "true"},
        {"diff.orderFile": "/does/not/exist"},
        {"diff.submodule": "log", "diff.ignoreSubmodules": "all", "diff.external": "/bin/false"},
        {"core.pager": "false", "pager.log": "true"},
    ],
    ids=lambda settings: " ".join(settings),
)
def test_no_setting_of_the_user_changes_what_is_read(
    user: User, engine: Engines, settings: dict[str, str]
) -> None:
    one = engine(user)
    user.commit_file("ü", "x\n", "grüße")
    put(one, subject="docs(01): plän")
    before = list(log(one.repository, "HEAD"))
    for name, value in settings.items():
        user.git("config", name, value)
    assert list(log(engine(user).repository, "HEAD")) == before


@pytest.mark.parametrize("told", [log, log_parents_first])
def test_a_commit_graph_that_hides_commits_hides_none(
    user: User, engine: Engines, told: Callable[..., Iterator[LoggedCommit]]
) -> None:
    for number in range(3):
        user.commit(f"commit {number}")
    oids = user.text("rev-list", "HEAD").split()
    user.git("commit-graph", "write", "--reachable")
    path = user.root / ".git/objects/info/commit-graph"
    graph = bytearray(path.read_bytes())
    path.chmod(0o644)
    parts = {
        bytes(graph[at : at + 4]): int.from_bytes(graph[at + 4 : at + 12], "big")
        for at in range(8, 8 + 12 * graph[6], 12)
    }
    place = parts[b"CDAT"] + 36 * sorted(oids).index(oids[1]) + 20
    graph[place : place + 4] = b"\x70\0\0\0"  # no parent: see gitformat-commit-graph(5)
    path.write_bytes(graph)
    assert user.text("rev-list", "HEAD").split() == oids[:2]
    assert {each.oid for each in told(engine(user).repository, "HEAD")} == set(oids)


def test_a_selection_that_looks_like_an_option_is_none(user: User, engine: Engines) -> None:
    with pytest.raises(YoloError, match="no commit is called '--all'"):
        list(log(engine(user).repository, "--all"))


# --- a long history, in parts ---


def test_a_history_is_told_in_parts_and_each_commit_after_its_parents(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = randrange(1_000_000)
    print(f"seed {seed}")
    monkeypatch.setattr(history, "_AT_ONCE", 7)
    a_line(user, seed, 40)  # its clock goes wrong: it begins in 1970
    side = user.text("commit-tree", "-m", "side", "-p", "main~20", "main~30^{tree}")
    blob = user.git("hash-object", "-w", "--stdin", given=b"of the merge").decode().strip()
    own = user.git("mktree", given=f"100644 blob {blob}\tof the merge\n".encode()).decode().strip()
    merge = user.text("commit-tree", "-m", "both", "-p", "main", "-p", side, own)
    repository = engine(user).repository

    told = list(log_parents_first(repository, merge))

    plain = sorted(commit._replace(own_changes=()) for commit in told)
    assert plain == sorted(log(repository, merge)) and len(told) > 42
    assert [commit.oid for commit in told if commit.own_changes] == [merge]
    seen: set[str] = set()
    for commit in told:
        assert seen.issuperset(commit.parents)
        seen.add(commit.oid)
    assert not list(log_parents_first(repository, merge, f"^{merge}"))


def test_a_merge_made_itself_what_none_of_its_parents_had(user: User, engine: Engines) -> None:
    for path in ("ours", "both", "gone"):
        user.add(path, "1")
    user.commit("together")
    user.git("checkout", "-q", "-b", "side")
    for path in ("theirs", "both"):
        user.add(path, "2")
    user.commit("side")
    user.git("checkout", "-q", "-")
    user.commit_file("ours", "2", "meanwhile")
    user.git("merge", "-q", "--no-commit", "--no-ff", "side")
    for path in ("both", "new"):
        user.add(path, "3")
    user.git("rm", "-q", "gone")
    user.commit("Merge side")

    made = {commit.subject: commit for commit in log_parents_first(engine(user).repository, "HEAD")}

    wanted = (("M", "both"), ("D", "gone"), ("A", "new"))
    assert made["Merge side"].own_changes == wanted
    assert set(made["Merge side"].changes) == {*wanted, ("A", "theirs")}
    assert all(not one.own_changes for name, one in made.items() if name != "Merge side")


# --- a short line of commits, from its objects alone ---

MESSAGES = (
    b"docs(01): plan", b"", b"\n \n\tlate\n", b"two  \r\nlines\t\n  of a subject\n \nbody\n",
    b"a\n\n \n\nbody\n\nYolo-Artifact: plan\nYolo-Phase: 01-auth\n", b"gr\xfc\xdfe", "grüße".encode(),
    b"\x0bodd\x0c\n\x0b\n\nrest", b"trailer\n\nKey: value\n \n", b"x\n\nYolo-Artifact: a\n\n\n",
)  # fmt: skip
NAMES = (b"a", b"a/b", b"a/b/c", b"a.b", b"a0", b"\xff", b"s p/\xc3\xbc", b"z/z")
MODES = (b"100644", b"100644", b"100755", b"120000", b"160000")


def a_line(user: User, seed: int, length: int) -> None:
    """Put commits on the branch whose messages and changes are of every sort."""
    chance, stream = Random(seed), [b"reset refs/heads/main\nfrom refs/heads/main^0\n\n"]
    for number in range(length):
        stream.append(b"commit refs/heads/main\ncommitter A B <a b> %d +0100\n" % number)
        said = chance.choice(MESSAGES)
        stream.append(b"data %d\n%s\n" % (len(said), said))
        for name in chance.sample(NAMES, chance.randrange(4)):
            mode, text = chance.choice(MODES), b"%d" % chance.randrange(3)
            if chance.random() < 0.3:
                stream.append(b"D %s\n" % name)
            elif mode == b"160000":
                stream.append(b"M %s %s %s\n" % (mode, text.decode().encode() * 40, name))
            else:
                stream.append(b"M %s inline %s\ndata %d\n%s\n" % (mode, name, len(text), text))
    user.git("fast-import", "--quiet", "--force", given=b"".join(stream))


def test_a_line_is_told_from_its_objects_as_the_log_tells_it(user: User, engine: Engines) -> None:
    seed = randrange(1_000_000)
    print(f"seed {seed}")
    repository, base = engine(user).repository, user.tip()
    a_line(user, seed, 60)
    told = log_of_line(repository, base, user.tip())
    logged = list(log(repository, f"{base}..{user.tip()}"))
    assert told == logged[::-1] and told and len(told) == 60


def test_a_short_history_is_told_whole_from_its_objects(user: User, engine: Engines) -> None:
    seed = randrange(1_000_000)
    print(f"seed {seed}")
    repository = engine(user).repository
    a_line(user, seed, 60)
    told = log_of_line(repository, "", user.tip())
    assert told == list(log(repository, user.tip()))[::-1] and told and not told[0].parents


def test_a_long_history_and_many_changes_are_left_to_git(user: User, engine: Engines) -> None:
    repository, base = engine(user).repository, user.tip()
    a_line(user, 1, 90)
    assert log_of_line(repository, "", user.tip()) is None
    assert log_of_line(repository, base, user.tip()) is not None
    before = user.tip()
    for number in range(501):
        (user.root / f"{number}").write_text("")
    user.git("add", *map(str, range(501)))
    user.git("commit", "-q", "-m", "many")
    assert log_of_line(repository, before, user.tip()) is None


def test_a_history_whose_first_commit_is_gone_is_left_to_git(user: User, engine: Engines) -> None:
    repository, base = engine(user).repository, user.tip()
    user.commit_file("m", "x\n", "main")
    (user.root / ".git" / "objects" / base[:2] / base[2:]).unlink()
    assert log_of_line(repository, "", user.tip()) is None


def test_an_old_commit_that_is_gone_is_named_as_missing(user: User, engine: Engines) -> None:
    repository, base = engine(user).repository, user.tip()
    user.commit_file("m", "x\n", "main")
    (user.root / ".git" / "objects" / base[:2] / base[2:]).unlink()
    for read in (lambda: refuse_torn(repository, user.tip()), lambda: [*log(repository, "HEAD")]):
        with pytest.raises(YoloError, match=base) as raised:
            read()
        assert raised.value.reason is Reason.OBJECT_MISSING


def test_a_merge_and_a_side_line_are_left_to_git(user: User, engine: Engines) -> None:
    one, base = engine(user), user.tip()
    user.git("switch", "-q", "-c", "side")
    side = user.commit_file("s", "x\n", "side")
    user.git("switch", "-q", "main")
    user.commit_file("m", "x\n", "main")
    assert log_of_line(one.repository, side, user.tip()) is None
    user.git("merge", "-q", "--no-edit", "side")
    assert log_of_line(one.repository, base, user.tip()) is None


# --- what the user moved the branch away from ---


def lost_of(repository: Repository, tip: str, ref: str = MAIN) -> Abandoned:
    return abandoned(repository, tip, moves_of(repository, ref))


def test_nothing_is_abandoned_in_a_straight_history(user: User, engine: Engines) -> None:
    one = engine(user)
    put(one)
    user.commit("on top")
    assert lost_of(one.repository, user.tip()).commits == ()


def test_what_came_after_a_look_at_the_branch_is_not_abandoned(user: User, engine: Engines) -> None:
    one = engine(user)
    before = put(one)
    put(one, data=LINE * 2)
    user.commit("on top")
    assert lost_of(one.repository, before).commits == ()


@pytest.mark.parametrize("how", ["--hard", "--soft", "--keep"])
def test_commits_that_the_user_reset_away_are_abandoned(
    user: User, engine: Engines, how: str
) -> None:
    one, before = engine(user), int(time.time())
    lost = {put(one), put(one, data=LINE * 2)}
    assert one.follower.follow()
    user.git("reset", how, "HEAD~2", GIT_COMMITTER_DATE="")
    told = lost_of(one.repository, user.tip())
    assert set(told.commits) == lost and told.moved_at_s >= before


def test_a_branch_that_another_name_keeps_is_still_abandoned_here(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    lost = put(one)
    user.git("branch", "kept")
    user.git("reset", "--quiet", "--hard", "HEAD~1")
    assert lost_of(one.repository, user.tip()).commits == (lost,)


def test_an_amended_commit_is_abandoned(user: User, engine: Engines) -> None:
    one = engine(user)
    lost = put(one)
    user.git("commit", "--quiet", "--amend", "--allow-empty", "-m", "mine now")
    assert lost_of(one.repository, user.tip()).commits == (lost,)


def test_commits_that_came_back_are_not_abandoned(user: User, engine: Engines) -> None:
    one = engine(user)
    put(one)
    user.git("reset", "--quiet", "--hard", "HEAD~1")
    user.git("reset", "--quiet", "--hard", "ORIG_HEAD")
    assert lost_of(one.repository, user.tip()).commits == ()


@pytest.mark.parametrize("name", ["other", "a/b", "-x", "a}b", "5"])
def test_any_branch_name_can_be_asked(user: User, engine: Engines, name: str) -> None:
    ref, base = f"refs/heads/{name}", user.tip()
    user.git("update-ref", "--create-reflog", ref, base)
    user.git("symbolic-ref", "HEAD", ref)
    lost = put(engine(user))
    user.git("update-ref", "-m", "reset: moving", ref, base)
    told = lost_of(engine(user).repository, base, ref)
    assert told.commits == (lost,) and told.moved_at_s == 1_700_000_000


@NEEDS_REF_FILES
def test_without_a_reflog_nothing_is_abandoned(user: User, make: Make, engine: Engines) -> None:
    (user.root / ".git/logs/refs/heads/main").unlink()
    assert lost_of(engine(user).repository, user.tip()) == Abandoned((), 0)


def test_an_entry_whose_commit_was_pruned_does_not_hide_the_others(
    user: User, engine: Engines
) -> None:
    """The reflog of a branch outlives a commit when the object store is repaired by hand, or copied."""
    one = engine(user)
    pruned = put(one)
    user.git("reset", "--quiet", "--hard", "HEAD~1")
    lost = put(one, data=LINE * 2)
    user.git("reset", "--quiet", "--hard", "HEAD~1")
    unpack(user.root)
    (user.root / ".git/objects" / pruned[:2] / pruned[2:]).unlink()
    assert lost_of(engine(user).repository, user.tip()).commits == (lost,)


@pytest.mark.timeout(30)
def test_a_mailmap_that_is_a_pipe_is_not_waited_for(user: User, engine: Engines) -> None:
    pipe = user.root.parent / "pipe"
    os.mkfifo(pipe)
    user.git("config", "mailmap.file", str(pipe))
    user.git("config", "log.mailmap", "true")
    assert [commit.oid for commit in log(engine(user).repository, "HEAD")] == [user.tip()]
