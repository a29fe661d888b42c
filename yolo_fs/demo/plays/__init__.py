"""Every play: its story, and beside it the files that its agents write."""

from __future__ import annotations

from yolo_fs.demo.plays.company.hold import HOLD
from yolo_fs.demo.plays.company.story import COMPANY
from yolo_fs.demo.plays.escalation.story import ESCALATIONS
from yolo_fs.demo.plays.login.story import PLAY as LOGIN
from yolo_fs.demo.plays.product.story import PRODUCT

PLAYS = (COMPANY, HOLD, LOGIN, PRODUCT, *ESCALATIONS)
"""The first three are what `yolo-fs demo` plays."""
