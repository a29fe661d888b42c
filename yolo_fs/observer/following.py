"""The part of the observer that keeps derived data up to date with the branch."""

from __future__ import annotations

import os
import select
import signal
import socket

from yolo_fs.core.json_form import to_json
from yolo_fs.daemon.duties import Duty, Schedule
from yolo_fs.daemon.follower import FOLLOWING, LOOK_REST, ON_MOVE, Follower
from yolo_fs.daemon.observing import Channel, applied, fresh_from
from yolo_fs.git.repository import Repository
from yolo_fs.observer.waiting import InboxWatcher


def follow(root: str, line: int) -> None:
    """Follow the branch of a work tree until the daemon at the other end of the line ends."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with socket.socket(fileno=line) as connection, Repository(root) as repository:
        channel = Channel(connection)
        follower = Follower(repository, channel.emit, channel.wrote)
        waiting = InboxWatcher(repository, follower)
        health: Duty[Follower] = Duty("health", lambda _: waiting.look_at_health(), rest=LOOK_REST)
        inbox: Duty[Follower] = Duty("inbox", lambda _: waiting.look(), rest=LOOK_REST)
        schedule = Schedule((*FOLLOWING, health, inbox), follower, channel.emit)
        sent: object = None
        is_told = False
        while channel.is_open:
            sleep_s = schedule.sleep_s() if is_told else None
            if select.select([channel], [], [], sleep_s)[0]:
                for message in channel.receive():
                    if "ask" in message:
                        fresh = fresh_from(message["fresh"])
                        channel.answer(message["ask"], follower.state_moved(message["tip"], fresh))
                        continue
                    follower.verdicts = applied(follower.verdicts, message["verdicts"])
                    is_told = True
                schedule.ask(*ON_MOVE)
            if not is_told:  # what the daemon knows of the files is part of the first look
                continue
            schedule.run_due(lambda: channel.is_open)
            if sent is None and channel.is_open:
                channel.emit("observer.started", "", {"pid": os.getpid()})
            state = {
                "headline": follower.headline,
                "standing": waiting.standing,
                "waiting": waiting.told,
                "troubles": to_json(list(schedule.troubles)),
                "at": follower.tip,
            }
            if state != sent:
                sent = state
                channel.send(state)
        follower.close()
