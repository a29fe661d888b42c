"""The goals of the plan, one row each; every benchmark says which of them its measurements
answer.
"""

from __future__ import annotations

from enum import Enum


class Aim(Enum):
    """What was to be reached, in the order of the plan."""

    COMMIT = "single commit p50 / 6-object floor without sync: at most 4, small and large"
    DURABLE = "durable commit p50 / synced floor: at most 2"
    SIZE = "independence from repository size, p50 large / small: at most 2"
    LATENCY = "write to commit p50, best peer / yolo-fs: at least 5 small, 50 large"
    BESIDE = "12 writes a second for 150 s beside a committing user, p99 ms: at most 60"
    BURST = "burst of 1,000, durable, against git commit --only: at least 40 small, 300 large"
    STREAM = "the same against git fast-import, one stream: at least 2"
    LOOSE = "loose objects left by the burst: at most 50"
    FOLLOW = "index refreshes per 100 ms of a burst: at most 1"
    WATCH = "watch latency p50 / inotify, largest tree: at most 5"
    MISSED = "artifacts missed in new folders, renames and overflow: 0"
    TYPED = "validation, typed / json.loads: at least 2"
    STRICT = "validation with the check for duplicate keys / json.loads: at least 0.75"
    PIPELINE = "validation / jsonlines and jsonschema: at least 25"
    STATUS = "status update, 8 processes, synced / shell script, not synced: at least 30"
    MESSAGE = "hook commit-msg / python -c pass: at most 1"
    START = "any other command, time to first work / python -c pass: at most 3"
    WARM = "warm status, resume, gate, may, validate / python -I -S -c pass: at most 10"
    WARM_HOOK = "warm hook / python -I -S -c pass: at most 8 on the planning tree, 3 elsewhere"
    COLD = "the same commands, cold / python -I -S -c pass: at most 25"
    CROWD = "20 warm commands at once, p99 / one alone: at most 3"
    GROWTH = "status and resume, 95 open phases / 5: at most 1.5"
    RESUME = "warm resume correlation / git log of 20,000 commits: at most 0.1"
    TEAM = "an artifact of one of 8 work trees, committed in all, p50 ms: at most 50"
    LANE = "lag over a git remote, commit to the other clone's commit, p50: at most 1.5 s"
    SLOW_REMOTE = "write to commit beside a remote of 2 s per push / in no team: at most 1.1"
    IDLE = "idle CPU of the daemon, 20,000 folders, with its scans: at most 0.3 percent"
    FLAT = "memory of the daemon after 50,000 commits / after 1,000: at most 1.2"
    MEMORY = "memory of the daemon, 1,000 folders: at most 40 MB"
