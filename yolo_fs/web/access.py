"""Decides which request may see the board: only this user's own browser with the token.

A page of another site has another Origin or no cookie (`SameSite=Strict`). DNS rebinding has
another Host. The connection of another user of the machine has another owner.
"""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from threading import Event, Lock
from typing import NamedTuple

from yolo_fs.system.connections import TABLES, Endpoint, connection_owners

LOOPBACK = "127.0.0.1"

HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every answer, refusals included."""

_SITES = ("same-origin", "none")
"""What a browser reports of a request by our own page, and of a typed address."""
_LONGEST_COOKIES = 4_096
_PAUSES_S = (0.0, 0.02, 0.1)
"""Pauses before each attempt to find the owner of a connection."""


_NO_TOKEN = "Open the address that 'yolo-fs board' printed."
_NOT_YOURS = "The board belongs to another user, or the user of this connection is unknown."


class RefusedRequest(NamedTuple):
    """A request that gets nothing."""

    status: int
    why: str


@dataclass(slots=True)
class Gatekeeper:
    """Knows the one address, the printed token, and a single-use token."""

    port: int
    token: str
    once: str = ""
    """Single-use token of a browser that we open ourselves; empty where there is none."""
    is_spent: Event = field(default_factory=Event)
    """Set as soon as that token was used, or nobody waits for it any more."""
    _one_at_a_time: Lock = field(default_factory=Lock)

    @property
    def cookie(self) -> str:
        """Name of the cookie; cookies of all ports of a host share one jar."""
        return f"yolo_fs_board_{self.port}"

    @property
    def set_cookie(self) -> str:
        """The header that gives a browser its cookie."""
        return f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"

    def is_token(self, given: str) -> bool:
        """Return whether this is the printed token, in constant time."""
        return _is_same(given, self.token)

    def refusal(
        self, method: str, headers: Mapping[str, str], given: str, is_of_another: Callable[[], bool]
    ) -> RefusedRequest | None:
        """Return why a request is refused; None when it may be answered.

        The single-use token admits one request. `headers`: names in lower case. `given`: the token
        of the address, empty where there is none. `is_of_another`: whether another user holds the
        other end of the connection.
        """
        if method not in ("GET", "HEAD"):
            return RefusedRequest(405, "The board is read-only.")
        hosts = {f"{LOOPBACK}:{self.port}", f"localhost:{self.port}"}
        host = headers.get("host", "")
        if host not in hosts:
            port = self.port  # the address of a forwarded port looks like that of a rebound name
            why = (
                f"The board answers only as {LOOPBACK}:{port} or localhost:{port}. "
                "Where it is forwarded, use one port at both ends: "
                f"'yolo-fs board --no-open --port {port}' there, "
                f"'ssh -L {port}:{LOOPBACK}:{port} HOST' here."
            )
            return RefusedRequest(421, why)
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return RefusedRequest(403, "Another site may not read the board.")
        is_once = bool(self.once) and _is_same(given, self.once)
        has_token = is_once or self.is_token(given)
        if headers.get("sec-fetch-site", "none") not in _SITES and not has_token:
            return RefusedRequest(403, "Another site may not read the board.")
        has_cookie = self._has_cookie(headers.get("cookie", ""))
        if not has_token and not has_cookie:
            return RefusedRequest(403, _NO_TOKEN)
        if is_of_another():
            return RefusedRequest(403, _NOT_YOURS)
        if is_once and not self._spend_token() and not has_cookie:
            return RefusedRequest(403, _NO_TOKEN)
        return None

    def _spend_token(self) -> bool:
        """Use up the single-use token; return whether it was available."""
        with self._one_at_a_time:
            is_first = not self.is_spent.is_set()
            self.is_spent.set()
        return is_first

    def _has_cookie(self, cookies: str) -> bool:
        """Return whether our cookie is among some; if one of them is malformed, none counts."""
        try:
            cookie = SimpleCookie(cookies[:_LONGEST_COOKIES]).get(self.cookie)
        except CookieError:
            return False
        return cookie is not None and self.is_token(cookie.value)


def _is_same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def is_foreign(peer: Endpoint, own: Endpoint, tables: Sequence[str] = TABLES) -> bool:
    """Return whether the other end of a connection is not proved to be this user's or root's.

    This makes a stolen token worthless. An unknown owner counts as another user. A row that a busy
    kernel leaves out once is looked for again.
    """
    for pause_s in _PAUSES_S:
        time.sleep(pause_s)
        if owners := connection_owners(peer, own, tables):
            return not owners <= {0, os.getuid()}
    return True
