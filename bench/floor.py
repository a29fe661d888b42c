"""The physical floor of one commit: the files that any git must write, and nothing else."""

from __future__ import annotations

import os
import secrets

OBJECT_BYTES = (360, 3000, 60, 90, 120, 230)
"""What the blob, the four trees and the commit of one artifact come to, compressed."""


class Floor:
    """Writes what a commit writes, into a directory of its own on the repository's file system."""

    def __init__(self, directory: str, *, files_synced: bool = False, folders_synced: bool = False):
        self._directory = directory
        self._files_synced = files_synced
        self._folders_synced = folders_synced
        for number in range(256):
            os.makedirs(f"{directory}/objects/{number:02x}", exist_ok=True)
        for folder in ("refs/heads", "logs"):
            os.makedirs(f"{directory}/{folder}", exist_ok=True)

    def commit(self, _round: int) -> None:
        """Write six objects, move a ref, append to its log."""
        folders = {self._object(size) for size in OBJECT_BYTES}
        for folder in folders if self._folders_synced else ():
            _sync_folder(folder)
        ref = f"{self._directory}/refs/heads/main"
        self._put(f"{ref}.lock", ref, secrets.token_hex(20).encode() + b"\n")
        if self._folders_synced:
            _sync_folder(f"{self._directory}/refs/heads")
        with open(f"{self._directory}/logs/main", "ab") as log:
            log.write(b"0" * 150 + b"\n")

    def _object(self, size: int) -> str:
        name = secrets.token_hex(20)
        folder = f"{self._directory}/objects/{name[:2]}"
        self._put(f"{folder}/tmp_obj", f"{folder}/{name[2:]}", os.urandom(size))
        return folder

    def _put(self, temporary: str, final: str, data: bytes) -> None:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
        os.write(descriptor, data)
        if self._files_synced:
            os.fsync(descriptor)
        os.close(descriptor)
        os.rename(temporary, final)


def _sync_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(descriptor)
    os.close(descriptor)
