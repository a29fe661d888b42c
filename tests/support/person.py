"""Makes a forked process that of another user of the machine."""

from __future__ import annotations

import codecs
import importlib
import os
import sys

PERSON = "YOLO_TEST_PERSON"
"""Environment variable: uid, gid and the ids of other groups, with colons between."""


def become() -> None:
    """Become whom the environment names; it takes root, and nothing is given back.

    The interpreter may lie where that user cannot read: what a verb needs is imported before.
    """
    for late in ("_strptime", "concurrent.futures.thread", "subprocess"):
        importlib.import_module(late)
    for encoding in ("utf-8-sig", "idna"):
        codecs.lookup(encoding)
    uid, gid, *groups = map(int, os.environ.pop(PERSON).split(":"))
    os.setgroups(groups)
    os.setgid(gid)
    os.setuid(uid)
    try:
        os.chdir(os.curdir)
    except PermissionError:  # nobody gets into a folder that is closed to them
        sys.exit(126)
