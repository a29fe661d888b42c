"""Only this user's own browser with the token sees the board; everybody else gets nothing, and nothing hangs."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.support.teams import Team
from tests.web.served import PATIENCE_S, Client, served
from yolo_fs.system import PROC
from yolo_fs.web.access import LOOPBACK, Gatekeeper, is_foreign

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


def test_the_oldest_silent_connections_make_room_for_who_asks_something(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yolo_fs.web.server._MOST_CONNECTIONS", 8)
    silent = [socket.create_connection(("127.0.0.1", client.port), 10) for _ in range(30)]
    try:
        assert client.ask("/api/repositories", cookie=client.cookie).status == 200
        for one in silent[:22]:
            one.settimeout(PATIENCE_S)
            assert ended(one), "a silent connection is kept"
        with client.events() as stream:  # the oldest of all from here on
            next(stream)
            silent += [socket.create_connection(("127.0.0.1", client.port), 10) for _ in range(20)]
            assert client.ask("/api/repositories", cookie=client.cookie).status == 200
            assert client.ask("/", cookie="x").status == 403
    finally:
        for one in silent:
            one.close()


@pytest.mark.parametrize(
    "beginning",
    [b"", b"GET /api/board HTTP/1.1\r\nHost: ", b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET"],
)
def test_a_connection_that_never_ends_its_request_is_ended(
    client: Client, monkeypatch: pytest.MonkeyPatch, beginning: bytes
) -> None:
    monkeypatch.setattr("yolo_fs.web.server._SILENCE_S", 0.2)
    with socket.create_connection(("127.0.0.1", client.port), PATIENCE_S) as one:
        one.sendall(beginning)
        assert ended(one), "it is kept"


def ended(connection: socket.socket) -> bool:
    """Read what is left; tell whether the other side has closed it."""
    try:
        while connection.recv(65_536):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


def test_who_forwards_another_port_is_told_the_way(client: Client) -> None:
    answer = client.ask("/", Host="localhost:9090")
    assert answer.status == 421
    assert f"ssh -L {client.port}:127.0.0.1:{client.port}".encode() in answer.body


ROW = "   0: {} {} 01 00000000:00000000 00:00000000 00000000 {:5d} 0 {} 1 0\n"
HERE, MAPPED = "0100007F", "0000000000000000FFFF00000100007F"
OTHER = os.getuid() + 12_345


def rows(*sockets: tuple[str, int, int, int]) -> str:
    """Return a table of the kernel: host, port, owner and inode of each socket that leads to port 80."""
    lines = (
        ROW.format(f"{host}:{port:04X}", f"{host}:{80:04X}", owner, inode)
        for host, port, owner, inode in sockets
    )
    return f"  sl  local_address\n{''.join(lines)}"


@pytest.mark.skipif(sys.byteorder == "big", reason="the rows are those of a little-endian machine")
def test_only_a_connection_that_is_proved_to_be_the_users_own_is_let_in(tmp_path: Path) -> None:
    four, six = tmp_path / "tcp", tmp_path / "tcp6"
    me = os.getuid()
    four.write_text(
        rows((HERE, 1, OTHER, 9), (HERE, 2, me, 9), (HERE, 3, 0, 9), (HERE, 4, me, 0))
        + "torn row\n"
    )
    six.write_text(rows((MAPPED, 5, OTHER, 9), (MAPPED, 6, me, 9), (MAPPED, 7, me, 0)))
    tables = (str(four), str(six))
    let_in = {
        port for port in range(1, 9) if not is_foreign((LOOPBACK, port), (LOOPBACK, 80), tables)
    }
    assert let_in == {2, 3, 6}, "neither another user's, nor one that is closed or in no table"
    mapped = (f"::ffff:{LOOPBACK}", 6), (f"::ffff:{LOOPBACK}", 80)
    assert not is_foreign(*mapped, tables)
    assert is_foreign(("::1", 6), ("::1", 80), tables)


def test_without_the_kernels_tables_lsof_tells_whose_a_connection_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = (str(tmp_path / "absent"),)
    with socket.create_server((LOOPBACK, 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection((LOOPBACK, port)) as four, mapped_connection(port) as six:
            ends = [(one.getsockname()[1], one.getpeername()[1]) for one in (four, six)]
            own = [((LOOPBACK, peer), (LOOPBACK, port)) for peer, port in ends]
            if shutil.which("lsof"):
                assert not any(is_foreign(*each, absent) for each in own)
                assert is_foreign((LOOPBACK, 1), (LOOPBACK, port), absent)
            monkeypatch.setenv("PATH", str(tmp_path))
            assert all(is_foreign(*each, absent) for each in own), "nothing tells"


def mapped_connection(port: int) -> socket.socket:
    """Connect to an address of the old family through a socket of the new one."""
    six = socket.socket(socket.AF_INET6)
    six.connect((f"::ffff:{LOOPBACK}", port))
    return six


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_second_user_gets_nothing_even_with_the_cookie(
    client: Client, family: socket.AddressFamily
) -> None:
    if os.getuid() != 0 or not os.path.exists(f"{PROC}/net/tcp"):
        pytest.skip("only root can be two users, and only Linux tells whose a connection is")
    is_six = family is socket.AF_INET6
    assert statuses(client, is_six=is_six, uid=os.getuid()) == "200 200 200 200"
    assert statuses(client, is_six=is_six, uid=65_534) == "403 403 403 403"


def statuses(client: Client, *, is_six: bool, uid: int) -> str:
    """Return what a user is answered who has seen the address, asking twice by each connection."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(uid)
            os.setuid(uid)
            for target, cookie in (("/api/board", client.cookie), (f"/?token={client.token}", "")):
                connection = http.client.HTTPConnection(LOOPBACK, client.port, timeout=10)
                if is_six:
                    connection.sock = mapped_connection(client.port)
                for _ in range(2):  # whose a connection is is asked once, and holds as long as it
                    connection.request(
                        "GET", target, headers={"cookie": cookie, "host": client.host}
                    )
                    answer = connection.getresponse()
                    answer.read()
                    status = 200 if answer.status == 303 else answer.status
                    os.write(writer, b"%d " % status)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as told:
        return told.read().strip()


# --- cookies ---

MALFORMED = (
    b"a{=1",
    b"a{=1; %s",
    b"a=b; " * 10_000 + b"%s",
    b'a="\\%s',
    b'"; =\\,;;=' * 100,
    b"%s\xff",
    b"\xff\xfe=%s",
    b"\xe2\x80\xae; \xc3\x28",
    b'a="\\777\\400\\' * 90,
    b"=; =%s; ==",
    b"expires=%s; path=/; Path",
    b",%s",
    b";" * 30_000,
    b"$Version=1; $%s",
    b"x" * 60_000,
)


@pytest.mark.parametrize("cookie", MALFORMED)
def test_a_malformed_cookie_counts_as_none(client: Client, cookie: bytes) -> None:
    sent = cookie.replace(b"%s", client.cookie.encode())
    with socket.create_connection((LOOPBACK, client.port), 10) as raw:
        raw.sendall(
            b"GET /api/repositories HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nCookie: %s\r\n\r\n"
            % (client.host.encode(), sent)
        )
        answer = b"".join(iter(lambda: raw.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 403 "), answer[:200]
    assert b"Traceback" not in answer


def test_a_well_formed_cookie_beside_those_of_other_pages_is_found(client: Client) -> None:
    cookie = f'theme=dark; {client.cookie}; other="quoted value"'
    assert client.ask("/api/repositories", cookie=cookie).status == 200


# --- every route by one gate ---


def test_no_route_is_answered_without_the_gate(team: Team) -> None:
    """The routes are the program's own list, so one that is added is asked too."""
    with served(team.root) as client:
        assert len(client.paths) >= 9
        for path in client.paths:
            target = path.replace("{name}", "page.js")
            for method in ("GET", "HEAD", "POST"):
                refused = client.ask(target, method=method)
                assert refused.status in (403, 405), (target, method)
            if path != "/api/events":
                assert client.ask(target, cookie=client.cookie).status != 403, target


# --- the browser that we open ---


def seen_by_browser(words: list[str]) -> str:
    """Return the address that a browser is led to by the words it was started with."""
    (file,) = [urlsplit(word).path for word in words if word.startswith("file:")]
    path = Path(file)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    return str(re.findall(r'url=(http[^"]+)"', path.read_text())[0])


def test_the_browser_is_led_by_a_file_that_is_this_users_alone_and_works_once(
    team: Team, tmp_path: Path
) -> None:
    browser, told = tmp_path / "browser", tmp_path / "told"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {told}.new; env >> {told}.new\n'
                       f"mv {told}.new {told}\nsleep 600\n")  # fmt: skip
    browser.chmod(0o755)
    command = [sys.executable, "-m", "yolo_fs", "board", "-C", str(team.root)]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    asked = {**os.environ, "BROWSER": str(browser), "TMPDIR": str(temporary)}
    with subprocess.Popen(
        command, env=asked, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            client = Client(process.stdout.readline().strip())
            until(told.exists, "the browser is started while the board is served")
            words = told.read_text().splitlines()
            assert not any("token" in word for word in words), "in no command line or environment"
            assert client.token not in told.read_text()
            address = seen_by_browser(words)
            once = parse_qs(urlsplit(address).query)["token"][0]
            assert once != client.token
            target = f"/?token={once}"
            elsewhere = client.ask(target, host="evil.example")
            first, second = (client.ask(target, Sec_Fetch_Site="cross-site") for _ in range(2))
            assert (elsewhere.status, first.status, second.status) == (421, 200, 403)
            assert first.headers["set-cookie"].startswith(client.cookie)
            assert b'content="0; url=/"' in first.body
            assert once.encode() not in first.body
            assert client.ask("/", cookie=client.cookie).status == 200
            assert client.ask(f"/api/board?token={once}").status == 403
            assert client.ask(target, cookie=client.cookie).status == 200, "back in its history"
            for _ in range(2):
                assert client.ask(f"/?token={client.token}").status == 303, "the printed one stays"
            until(lambda: not list(temporary.iterdir()), "the file is gone once it was used")
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def test_a_token_that_works_once_is_taken_by_one_of_many_that_ask_at_once() -> None:
    keeper = Gatekeeper(80, "printed", "once")
    asks = [({"host": "127.0.0.1:80"}, "once", lambda: False)] * 50
    with ThreadPoolExecutor(20) as pool:
        given = list(pool.map(lambda each: keeper.refusal("GET", *each), asks))
    assert given.count(None) == 1
    keeper = Gatekeeper(80, "printed", "once")
    refused = keeper.refusal("GET", {"host": "127.0.0.1:80"}, "once", lambda: True)
    assert refused is not None
    assert not keeper.is_spent.is_set(), "another user cannot use it up"
    assert Gatekeeper(80, "printed").refusal("GET", {"host": "127.0.0.1:80"}, "", lambda: False)


def until(holds: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def test_the_token_is_compared_whole() -> None:
    keeper = Gatekeeper(80, "right")
    assert keeper.is_token("right")
    assert not any(keeper.is_token(guess) for guess in ("", "righ", "rightt", "wrong", "\udcff"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_board_that_is_ended_before_it_serves_leaves_no_folder(
    team: Team, tmp_path: Path, number: int
) -> None:
    """The signal comes while the folder is there, and nothing serves yet."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    program = f"""
import os, signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored behind nohup, as SIGINT behind `&`
signal.signal(signal.SIGINT, signal.default_int_handler)
from yolo_fs.cli.main import run
from yolo_fs.web.server import BoardServer
def serve(self):
    assert os.listdir({str(folder)!r})
    os.kill(os.getpid(), {int(number)})
    time.sleep(30)
    sys.stderr.write("not ended")
BoardServer.serve = serve
run(["board", "-C", {str(team.root)!r}])
"""
    env = {**os.environ, "TMPDIR": str(folder), "BROWSER": "true"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, timeout=60)
    assert b"AssertionError" not in done.stderr and b"not ended" not in done.stderr
    assert os.listdir(folder) == []
