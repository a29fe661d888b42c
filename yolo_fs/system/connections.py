"""Finds the owner of the other end of a connection within this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from itertools import product

from yolo_fs.system import PROC
from yolo_fs.system.system import told_by

Endpoint = tuple[str, int]
"""Numeric address and port."""
TABLES = (f"{PROC}/net/tcp", f"{PROC}/net/tcp6")
"""The kernel's tables of both families: a client that connects to ::ffff:127.0.0.1 is in the
second, and reaches a listener on 127.0.0.1."""
_OWNER, _INODE = 7, 9
"""Columns of a row."""


def connection_owners(
    peer: Endpoint, own: Endpoint, tables: Sequence[str] = TABLES
) -> frozenset[int]:
    """Return the users that hold the other end of a connection; none where that is unknown.

    Where the kernel has no such tables, lsof is asked. It knows only the processes that it may
    inspect.
    """
    is_told = False
    for table in tables:
        with suppress(OSError), open(table, encoding="ascii", errors="replace") as file:
            is_told = True
            if owners := frozenset(_owners_in(file.read(), _printed(peer), _printed(own))):
                return owners
    return frozenset(() if is_told else _find_owners_by_lsof(_plain(peer), _plain(own)))


def _owners_in(table: str, peer: frozenset[str], own: frozenset[str]) -> Iterator[int]:
    """Yield the owner of each socket between two ends. Of thousands of rows, few are parsed.

    A socket without an inode is closed already: the kernel then names root, whoever owned it.
    """
    for ends in product(peer, own):
        for part in table.split(f": {' '.join(ends)} ")[1:]:
            row = ["", *ends, *part.partition("\n")[0].split()]
            if len(row) > _INODE and row[_INODE] != "0":
                yield int(row[_OWNER])


def _printed(end: Endpoint) -> frozenset[str]:
    """Return an address as the kernel prints it, in each family that it may be in.

    It has words of four bytes, each a number in the machine's byte order, then the port.
    """
    address = ip_address(_plain(end)[0])
    mapped = () if address.version == 6 else (ip_address(f"::ffff:{address}"),)
    return frozenset(f"{_words(each.packed)}:{end[1]:04X}" for each in (address, *mapped))


def _words(packed: bytes) -> str:
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)


def _plain(end: Endpoint) -> Endpoint:
    """Return an address in its canonical spelling, and a mapped one as what it stands for."""
    address = ip_address(end[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address), end[1]


def _find_owners_by_lsof(peer: Endpoint, own: Endpoint) -> Iterator[int]:
    uid = 0
    for line in map(os.fsdecode, told_by("lsof", "-nP", f"-iTCP:{peer[1]}", "-F", "un")):
        if line.startswith("u"):
            uid = int(line[1:])
        elif line.startswith("n") and list(_ends(line[1:])) == [peer, own]:
            yield uid


def _ends(spelled: str) -> Iterator[Endpoint]:
    """Yield the ends of `127.0.0.1:5000->127.0.0.1:80`; none for any other form."""
    for end in spelled.split("->"):
        host, _, port = end.rpartition(":")
        with suppress(ValueError):
            yield _plain((host.strip("[]"), int(port)))
