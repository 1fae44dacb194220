"""What every actor is handed beside its mailbox and its ports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pumice.actors.runtime.activity import Activity
from pumice.actors.runtime.alarm import Alarm
from pumice.actors.runtime.clock import Clock
from pumice.actors.runtime.door import Door
from pumice.actors.runtime.longest import Longest
from pumice.storage.shared_objects import SharedObjects


@dataclass(frozen=True)
class Context:
    """What every actor gets: the wall clock, the activity board, and what many read, decoded once.

    `alarm` makes something to sleep by; `longest` knows the request that held the loop longest; `door`: who is to be
    heard about what controllers ask of the api. `at_once`: whether messages are dealt with in the turn of who sends
    them where that is no wait (`pumice.actors.runtime.at_once`).
    """

    clock: Clock
    alarm: Callable[[], Alarm] = Alarm
    activity: Activity = field(default_factory=Activity)
    objects: SharedObjects = field(default_factory=SharedObjects)
    longest: Longest = field(default_factory=Longest)
    door: Door = field(default_factory=Door)
    at_once: bool = False
