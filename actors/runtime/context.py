"""What every actor is handed beside its mailbox and its ports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from actors.runtime.activity import Activity
from actors.runtime.alarm import Alarm
from actors.runtime.clock import Clock
from actors.runtime.news import News


@dataclass(frozen=True)
class Context:
    """What every actor gets: the wall clock, the activity board, and the api's news (its newest published revision).

    `alarm` makes something to sleep by.
    """

    clock: Clock
    news: News = field(default_factory=News)
    alarm: Callable[[], Alarm] = Alarm
    activity: Activity = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "activity", Activity(self.news))
