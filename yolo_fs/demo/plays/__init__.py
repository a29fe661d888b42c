"""Every play: one folder each, its story and the files that its agents write."""

from __future__ import annotations

from yolo_fs.demo.plays.login.story import PLAY as LOGIN

PLAYS = (LOGIN,)
"""The first is what `yolo-fs demo` plays."""
