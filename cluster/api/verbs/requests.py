"""One request in hand: when it came and from whom."""

from __future__ import annotations

from msgspec import Struct

from pumice.cluster.kube.conditions import written_second


class RequestMoment(Struct, frozen=True, gc=False):
    """`now` in seconds since the epoch; `user` goes into the journal beside what the request changed.

    `manager`: who comes to own the changed fields, where that is kept; the user when nobody is named. `uid`: of what is
    created; "": a new one.
    """

    now: float
    user: str = ""
    manager: str = ""
    uid: str = ""

    @property
    def text(self) -> str:
        """`now` as API timestamps are written."""
        return written_second(int(self.now))
