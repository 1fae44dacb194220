"""One request in hand: when it came and from whom."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from msgspec import Struct


class Moment(Struct, frozen=True, gc=False):
    """`now` in seconds since the epoch; `user` goes into the journal beside what the request changed.

    `manager`: who comes to own the changed fields, where that is kept; the user when nobody is named.
    """

    now: float
    user: str = ""
    manager: str = ""

    @property
    def text(self) -> str:
        """`now` as API timestamps are written."""
        return timestamp(int(self.now))


@lru_cache(maxsize=256)
def timestamp(seconds: int) -> str:
    """RFC 3339, UTC, whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
