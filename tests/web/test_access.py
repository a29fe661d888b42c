"""Only this user's own browser with the token sees the board; everybody else gets nothing, and nothing hangs."""

from __future__ import annotations

import http.client
import os
import socket
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.support.teams import Team
from tests.web.served import Client
from yolo_fs.edges import PROC
from yolo_fs.web.access import Gatekeeper, is_foreign

TARGETS = (
    "/",
    "/index.html",
    "/page.js",
    "/api/board",
    "/api/events",
    "/api/artifact?path=.yolo-planning/state.json",
    "/api/repositories",
    "/nothing",
)
WAY_OUT = "../"
TRICKS = (
    "",
    ".",
    "..",
    "/etc/passwd",
    WAY_OUT * 8 + "etc/passwd",
    ".yolo-planning/" + WAY_OUT * 9 + "etc/passwd",
    ".yolo-planning/phases/01-auth/" + WAY_OUT + "01-auth/critique.jsonl",
    ".yolo-planning/phases/01-auth//critique.jsonl",
    "./.yolo-planning/phases/01-auth/critique.jsonl",
    ".yolo-planning\\phases\\01-auth\\critique.jsonl",
    ".yolo-planning/phases/01-auth/critique.jsonl\0.png",
    ".yolo-planning/phases/01-auth/critique.jsonl\n",
    ".yolo-planning/phases/01-auth/critique.jsonl/",
    ".git/config",
    ".git/yolo-fs/events.jsonl",
    "src/auth.ts",
    "file:///etc/passwd",
    "C:\\Windows\\win.ini",
    "%2e%2e%2fetc%2fpasswd",
    "~/.ssh/id_ed25519",
    "critique.jsonl" * 2_000,
)
REVISIONS = (
    "--output=/tmp/owned",
    "-h",
    "HEAD..HEAD~1",
    "HEAD^@",
    "@{upstream}",
    "a" * 5_000,
    "\0",
    "HEAD\nHEAD",
    "refs/heads/../../config",
    "HEAD:.yolo-planning",
    ":/",
)


@pytest.mark.parametrize("target", TARGETS)
def test_without_the_token_nothing_is_shown(client: Client, team: Team, target: str) -> None:
    asks = {
        "no token": client.ask(target),
        "guessed": client.ask(target, cookie=f"yolo_fs_board_{client.port}={'A' * 43}"),
        "empty": client.ask(target, cookie=f"yolo_fs_board_{client.port}="),
        "cookie of another board": client.ask(target, cookie=f"yolo_fs_board_1={client.token}"),
        "in the address of an answer": client.ask(
            f"{target}{'&' if '?' in target else '?'}token=x"
        ),
        "prefix": client.ask(target, cookie=client.cookie[:-1]),
        "malformed": client.ask(target, cookie='"; =\\,;;=' * 100),
    }
    assert {name: answer.status for name, answer in asks.items()} == dict.fromkeys(asks, 403)
    told = b"".join(answer.body for answer in asks.values())
    assert os.fsencode(team.root.name) not in told
    assert client.token.encode() not in told


@pytest.mark.parametrize("target", TARGETS)
def test_another_host_or_origin_gets_nothing_even_with_the_token(
    client: Client, target: str
) -> None:
    cookie, here = client.cookie, f"127.0.0.1:{client.port}"
    asks = [
        client.ask(target, cookie=cookie, host="evil.example"),
        client.ask(target, cookie=cookie, host=f"evil.example:{client.port}"),
        client.ask(target, cookie=cookie, host="127.0.0.1"),
        client.ask(target, cookie=cookie, host=""),
        client.ask(target, cookie=cookie, host=f"{here}.evil.example"),
        client.ask(target, cookie=cookie, origin="https://evil.example"),
        client.ask(target, cookie=cookie, origin="null"),
        client.ask(target, cookie=cookie, origin=f"http://localhost:{client.port}"),
        client.ask(target, cookie=cookie, Sec_Fetch_Site="cross-site"),
        client.ask(target, cookie=cookie, Sec_Fetch_Site="same-site"),
        client.ask(target, cookie=cookie, method="POST"),
        client.ask(target, cookie=cookie, method="OPTIONS", origin="https://evil.example"),
        client.ask(target, cookie=cookie, method="DELETE"),
    ]
    assert {answer.status // 100 for answer in asks} == {4}
    assert {answer.status for answer in asks} <= {400, 403, 405, 421}
    assert not any(name.startswith("access-control") for one in asks for name in one.headers)


def test_two_hosts_are_refused(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.port), 10) as raw:
        raw.sendall(
            f"GET /api/board HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nHost: evil.example\r\n"
            f"Cookie: {client.cookie}\r\nConnection: close\r\n\r\n".encode()
        )
        assert raw.recv(100).startswith(b"HTTP/1.1 400")


def test_the_token_of_the_address_becomes_a_strict_cookie(client: Client) -> None:
    answer = client.ask(f"/?token={client.token}", Sec_Fetch_Site="none")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert answer.headers["set-cookie"] == f"{client.cookie}; Path=/; HttpOnly; SameSite=Strict"
    page = client.ask("/", cookie=client.cookie)
    assert page.status == 200
    assert client.token.encode() not in page.body


@pytest.mark.parametrize("target", TARGETS[:1] + TARGETS[3:])
def test_every_answer_has_the_headers_that_keep_a_browser_safe(client: Client, target: str) -> None:
    if target == "/api/events":
        return
    for answer in (client.ask(target), client.ask(target, cookie=client.cookie)):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'self'; ")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers


@pytest.mark.parametrize("path", TRICKS)
def test_no_path_reaches_the_disk_but_that_of_an_artifact(client: Client, path: str) -> None:
    for revision in ("", "HEAD"):
        answer = client.api("artifact", path=path, at=revision)
        assert answer.status in (400, 404)
        assert b"root:" not in answer.body
        assert b"[core]" not in answer.body
    assert client.ask(
        "/" + path.replace("\n", "%0a").replace("\0", "%00"), cookie=client.cookie
    ).status in (200, 404)


ASKED = {
    "board": ("at", "phase", "repo", "soon"),
    "artifacts": ("at", "repo"),
    "artifact": ("path", "at", "repo"),
    "timeline": ("phase", "repo", "look"),
    "handoffs": ("at", "repo"),
    "repositories": ("repo",),
    "plot": ("name", "phase", "width", "repo"),
}
"""Answer → every parameter that it takes; those of the events are numbers or nothing."""


@pytest.mark.parametrize("name", ASKED)
def test_no_trick_in_any_parameter_leaks_or_breaks_an_answer(client: Client, name: str) -> None:
    sound = {"phase": "01-auth", "name": "lanes", "soon": "1", "path": ".yolo-planning/config.json"}
    for parameter in ASKED[name]:
        for trick in (
            TRICKS[3],
            TRICKS[5],
            TRICKS[10],
            TRICKS[13],
            TRICKS[-1],
            "-1",
            "٣",
            "\ud800",
        ):
            known = {key: text for key, text in sound.items() if key in ASKED[name]}
            answer = client.api(name, **known | {parameter: trick.encode("utf-8", "surrogatepass")})
            assert answer.status in (200, 304, 400, 404), (parameter, trick[:80], answer.body[:300])
            for secret in (b"root:", b"[core]", b"Traceback", client.token.encode()):
                assert secret not in answer.body, (parameter, trick[:80])
    for last in ("-1", "9" * 99, TRICKS[4], "٣"):
        quoted = urlencode({"since": last, "before": last})
        with client.events(target=f"/api/events?{quoted}") as events:
            assert next(events)[1] == "hello"


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_revision_names_one_commit_or_nothing(
    client: Client, revision: str, tmp_path: Path
) -> None:
    for name in ("board", "artifacts", "artifact"):
        answer = client.api(name, at=revision, path=".yolo-planning/config.json")
        assert answer.status in (400, 404), answer.body[:300]
    assert not Path("/tmp/owned").exists()


def test_a_link_in_the_place_of_an_artifact_is_not_followed(client: Client, team: Team) -> None:
    secret = team.root.parent / "outside.txt"
    secret.write_text("not yours")
    link = team.root / ".yolo-planning/phases/01-auth/decisions.jsonl"
    link.symlink_to(secret)
    try:
        answer = client.api("artifact", path=".yolo-planning/phases/01-auth/decisions.jsonl")
        assert b"not yours" not in answer.body
    finally:
        link.unlink()


def test_a_slow_client_keeps_nobody_waiting(client: Client) -> None:
    slow = [socket.create_connection(("127.0.0.1", client.port), 10) for _ in range(20)]
    try:
        for one in slow:
            one.sendall(b"GET /api/board HTTP/1.1\r\nHost: ")
        began = time.monotonic()
        assert client.ask("/api/repositories", cookie=client.cookie).status == 200
        assert time.monotonic() - began < 5
    finally:
        for one in slow:
            one.close()


def test_a_connection_of_another_user_is_told_apart(tmp_path: Path) -> None:
    table = tmp_path / "tcp"
    row = "   0: 0100007F:{:04X} 0100007F:{:04X} 01 00000000:00000000 00:00000000 00000000 {:5d} 0 1 1 0\n"
    me, other = os.getuid(), os.getuid() + 12_345
    table.write_text(
        "  sl  local_address\n" + row.format(5_000, 80, other) + row.format(5_001, 80, me)
    )
    own = ("127.0.0.1", 80)
    assert is_foreign(("127.0.0.1", 5_000), own, str(table))
    assert not is_foreign(("127.0.0.1", 5_001), own, str(table))
    assert not is_foreign(("127.0.0.1", 5_002), own, str(table))
    assert not is_foreign(("127.0.0.1", 5_000), own, str(tmp_path / "absent"))


def test_a_second_user_gets_nothing_even_with_the_cookie(client: Client) -> None:
    if os.getuid() != 0 or not os.path.exists(f"{PROC}/net/tcp"):
        pytest.skip("only root can be two users, and only Linux tells whose a connection is")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # another user, who has seen the address
        try:
            os.setgid(65_534)
            os.setuid(65_534)
            connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=10)
            for _ in range(2):  # whose a connection is is asked once, and holds as long as it does
                connection.request("GET", "/api/board", headers={"cookie": client.cookie})
                answer = connection.getresponse()
                answer.read()
                os.write(writer, b"%d " % answer.status)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader, "rb") as statuses:
        assert statuses.read() == b"403 403 "


def test_the_token_is_compared_whole() -> None:
    keeper = Gatekeeper(80, "right")
    assert keeper.is_token("right")
    assert not any(keeper.is_token(guess) for guess in ("", "righ", "rightt", "wrong", "\udcff"))
