"""Decides which request may see the board: this user's own browser with the token, and nobody else.

A page of another site has another Origin or no cookie (`SameSite=Strict`), DNS rebinding another
Host, and a second user of the machine another owner of the connection.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple

from yolo_fs.edges import PROC

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
"""What a browser says of a request of our own page, and of an address that was typed."""
_LONGEST_COOKIES = 4_096
_TCP = f"{PROC}/net/tcp"


class RefusedRequest(NamedTuple):
    """A request that gets nothing."""

    status: int
    why: str


class Gatekeeper(NamedTuple):
    """Knows the one address and the one token."""

    port: int
    token: str

    @property
    def cookie(self) -> str:
        """Name of the cookie; cookies of all ports of a host share one jar."""
        return f"yolo_fs_board_{self.port}"

    @property
    def set_cookie(self) -> str:
        """The header that gives a browser its cookie."""
        return f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"

    def is_token(self, given: str) -> bool:
        """Return whether this is the token, in a time that tells nothing about it."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

    def refusal(
        self,
        method: str,
        headers: Mapping[str, str],
        given: str,
        is_of_another: Callable[[], bool],
    ) -> RefusedRequest | None:
        """Return why a request gets nothing; None when it may be answered.

        `headers`: names in lower case. `given`: the token of the address, empty where there is
        none. `is_of_another`: whether another user holds the other end of the connection.
        """
        if method not in ("GET", "HEAD"):
            return RefusedRequest(405, "The board only shows.")
        hosts = {f"{LOOPBACK}:{self.port}", f"localhost:{self.port}"}
        host = headers.get("host", "")
        if host not in hosts:
            return RefusedRequest(421, "This host is not the board's.")
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return RefusedRequest(403, "Another site may not read the board.")
        has_token = self.is_token(given)
        if headers.get("sec-fetch-site", "none") not in _SITES and not has_token:
            return RefusedRequest(403, "Another site may not read the board.")
        if not has_token and not self._has_cookie(headers.get("cookie", "")):
            return RefusedRequest(403, "Open the address that 'yolo-fs board' printed.")
        if is_of_another():
            return RefusedRequest(403, "The board belongs to another user.")
        return None

    def _has_cookie(self, cookies: str) -> bool:
        try:
            found = SimpleCookie(cookies[:_LONGEST_COOKIES]).get(self.cookie)
        except CookieError:
            return False
        return found is not None and self.is_token(found.value)


def is_foreign(peer: tuple[str, int], own: tuple[str, int], table: str = _TCP) -> bool:
    """Return whether another user of this machine, who is not root, holds the other end of a
    connection.

    A stolen token is then worth nothing. Where the kernel has no such table, the token alone
    decides.
    """
    wanted = (_in_table(*peer), _in_table(*own))
    try:
        with open(table, encoding="ascii") as file:
            rows = [line.split() for line in file]
    except (OSError, ValueError):
        return False
    owners = {int(row[7]) for row in rows[1:] if len(row) > 7 and (row[1], row[2]) == wanted}
    return bool(owners - {0, os.getuid()})


def _in_table(host: str, port: int) -> str:
    """Return an address as the kernel prints it: the bytes of the host backwards, then the port."""
    return "".join(f"{int(part):02X}" for part in reversed(host.split("."))) + f":{port:04X}"
