"""Clones and remotes as they should not be: shallow, partial, unrelated, namesakes, and leases that make no sense."""

from __future__ import annotations

import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.team.test_leases import backend
from tests.team.test_remote_sync import BRANCH, assert_agreed, at_remote, settle
from tests.team.work_trees import GAPS, PLAN, Clones, CloneTree, gap, plan
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.team.reconcile import path_of
from yolo_fs.workspace.settings import user_config_path


@pytest.mark.parametrize("how", ["--depth=1", "--filter=blob:none"])
def test_a_shallow_or_partial_clone_takes_part(
    clones: Clones, bare: Path, tmp_path: Path, how: str
) -> None:
    a, _ = clones
    at_remote(bare, "config", "uploadpack.allowFilter", "true")
    a.write(PLAN, plan("Tokens"))
    a.git("push", "-q", "origin", "HEAD:main")
    a.remote_sync.exchange()
    a.git("clone", "-q", how, f"file://{bare}", str(tmp_path / "odd"))
    odd = CloneTree(tmp_path / "odd").join_remote()
    odd.write(GAPS, gap(1))
    settle(a, odd)

    assert_agreed(bare, a, odd)
    odd.close()


def test_a_clone_without_a_common_ancestor_takes_part(
    clones: Clones, bare: Path, tmp_path: Path
) -> None:
    a, _ = clones
    a.write(PLAN, plan("Tokens"))
    a.remote_sync.exchange()
    root = tmp_path / "unrelated"
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    stranger = CloneTree(root)
    stranger.place(".yolo-planning/.gitkeep", "")
    stranger.git("add", "-A")
    stranger.git("commit", "-q", "-m", "chore: begin elsewhere")
    stranger.git("remote", "add", "origin", f"file://{bare}")
    stranger.join_remote()
    stranger.write(GAPS, gap(1))
    settle(a, stranger)

    assert_agreed(bare, a, stranger)
    stranger.close()


def test_a_remote_of_another_hash_is_told_and_work_goes_on(clones: Clones, tmp_path: Path) -> None:
    a, _ = clones
    a.write(PLAN, plan("Tokens"))
    a.remote_sync.exchange()
    root = tmp_path / "sha256"
    subprocess.run(["git", "init", "-q", "--object-format=sha256", str(root)], check=True)
    stranger = CloneTree(root)
    stranger.git("remote", "add", "origin", a.git("remote", "get-url", "origin").strip())
    stranger.join_remote()
    stranger.write(GAPS, gap(1))
    with pytest.raises(YoloError, match="another object hash"):
        stranger.remote_sync.exchange()
    assert stranger.committed(GAPS) == gap(1) + "\n"
    stranger.close()


class _Expired(BaseHTTPRequestHandler):
    """Asks everybody for credentials."""

    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="team"')
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_credentials_that_expired_are_told_without_a_prompt_and_nothing_is_lost(
    clones: Clones, bare: Path
) -> None:
    a, b = clones
    address = a.git("remote", "get-url", "origin").strip()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Expired) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        a.move_remote(f"http://127.0.0.1:{server.server_port}/team.git")
        a.write(GAPS, gap(1))
        with pytest.raises(YoloError) as refused:
            a.remote_sync.exchange()
        server.shutdown()
    assert refused.value.reason is Reason.REMOTE_AWAY
    assert a.look().publish

    a.move_remote(address)
    settle(a, b)
    assert_agreed(bare, a, b)


def test_two_clones_of_one_name_publish_nothing_twice(clones: Clones, bare: Path) -> None:
    a, b = clones
    name = a.synchronizer.membership.clone
    agreed = [*Path(user_config_path()).parent.glob("teams/*.json")]
    for kept in (Path(b.repository.own_dir, "team.json"), *agreed):
        kept.write_text(json.dumps({**json.loads(kept.read_text()), "clone": name}))
    assert b.synchronizer.membership.clone == name
    a.write(GAPS, gap(1))
    b.write(GAPS, gap(2))
    settle(*clones)

    assert_agreed(bare, a, b)


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"dept": "backend", "holder": 7, "epoch": 1, "ttl_s": 60}',
     '{"dept": "backend", "holder": "b", "epoch": 2, "ttl_s": 60, "from": "the future"}'],
)  # fmt: skip
def test_a_lease_that_is_torn_or_from_the_future_stops_its_department_and_can_be_taken(
    clones: Clones, bare: Path, content: str
) -> None:
    a, _ = clones
    a.write(PLAN, plan("Tokens"))
    a.remote_sync.exchange()
    a.git("checkout", "-q", "--detach", a.synchronizer.team_tip() or "")
    a.place(path_of("backend"), content)
    a.git("add", "-f", path_of("backend"))
    a.git("commit", "-q", "-m", "torn")
    a.git("push", "-q", "origin", f"HEAD:{BRANCH}")
    a.git("checkout", "-q", "main")
    a.write(GAPS, gap(1))
    assert [each.reason for each in a.remote_sync.exchange().held] == [Reason.LEASE_HELD]

    a.remote_sync.pass_lease("backend", a.synchronizer.membership.clone, backend(a))
    a.remote_sync.exchange()
    assert at_remote(bare, "log", "-1", "--format=%s", BRANCH).strip() == "docs(01): gaps"


def test_what_is_no_artifact_and_what_is_invalid_on_the_team_branch_goes_nowhere(
    clones: Clones, bare: Path
) -> None:
    a, b = clones
    a.write(PLAN, plan("Tokens"))
    settle(*clones)
    a.git("checkout", "-q", "--detach", a.synchronizer.team_tip() or "")
    a.place("src/evil.py", "import os\n")
    a.place(GAPS, "no json\n")
    a.git("add", "-f", "-A")
    a.git("commit", "-q", "-m", "foreign")
    a.git("push", "-q", "origin", f"HEAD:{BRANCH}")
    a.git("checkout", "-q", "main")

    b.remote_sync.exchange()
    held = b.look().held
    assert [each.path for each in held] == [GAPS]
    assert not (b.root / "src").exists()
    assert GAPS not in b.planning()
    a.write(PLAN, plan("Tokens that rotate"))
    a.remote_sync.exchange()
    b.meet()
    assert "rotate" in b.committed(PLAN)


def test_a_default_branch_of_another_name_changes_nothing(clones: Clones, bare: Path) -> None:
    a, b = clones
    at_remote(bare, "branch", "-m", "main", "trunk")
    b.git("branch", "-m", "trunk")
    a.write(GAPS, gap(1))
    settle(*clones)

    assert_agreed(bare, a, b)
