# SPDX-License-Identifier: Apache-2.0
"""Node agents and controllers without waiting: their machines see the changes and return their requests immediately."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Final, Protocol

from pumice.cluster.kernel.turns import AGAIN_MOST, Turns

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from pumice.cluster.api.store import Store
    from pumice.cluster.machine import Machine
    from pumice.core.messages.commands import ApiRequest
    from pumice.core.messages.replies import ApiReply
    from pumice.storage.shared_objects import SharedObjects

# No limit: nothing else waits for this loop.
WHOLE_LOG: Final = 1 << 30


class Api(Protocol):
    """The API of machines: objects under rising revisions, and answers to requests."""

    def has(self, kinds: Sequence[str]) -> bool:
        """Return whether there is an object of one of these kinds."""
        ...

    def tell_all(self, turns: Turns) -> int:
        """Show machines every object of their kinds. Return the revision up to which they have seen all."""
        ...

    def tell_news(self, turns: Turns, since: int) -> int:
        """Show machines the changes published after a revision. Return the one up to which they have seen all."""
        ...

    def apply(self, request: ApiRequest, now: float) -> ApiReply:
        """Carry out a request."""
        ...


class StoreApi:
    """A local store, and the decoded objects of its changes."""

    def __init__(self, store: Store, objects: SharedObjects) -> None:
        self._store, self._objects = store, objects

    def has(self, kinds: Sequence[str]) -> bool:
        """Return whether there is an object of one of these kinds."""
        return self._store.tables.has(kinds)

    def tell_all(self, turns: Turns) -> int:
        """Show machines every object of their kinds, kind by kind."""
        tables = self._store.tables
        for kind in turns.whole_kinds:
            for _, record in tables.of_kind(kind):
                turns.observe(kind, tables.seen(record), record.revision)
        return self._store.revision

    def tell_news(self, turns: Turns, since: int) -> int:
        """Show machines the published changes of their kinds."""
        log, kinds = self._store.log, turns.kinds
        # the log is not searched where none of these kinds has changed
        more = log.head(kinds) > since
        while more:
            found = log.read(since, kinds, WHOLE_LOG)
            turns.tell(found.events, self._objects.unpack)
            since, more = found.revision, found.more
        return since

    def apply(self, request: ApiRequest, now: float) -> ApiReply:
        """Carry out a request immediately: machines send none that waits."""
        return self._store.apply(request, now)  # type: ignore[arg-type]


class MachineHost:
    """Machines on one reading of an api.

    `waits_for`: kinds; an object of one of them must exist before any other kind is looked at. `rounds`: of asking in
    a turn, at most.
    """

    def __init__(
        self, api: Api, machines: Sequence[Machine], waits_for: Sequence[str] = (), rounds: int = AGAIN_MOST
    ) -> None:
        self._api, self._turns, self._rounds = api, Turns(machines), rounds
        self._waits_for = tuple(waits_for)
        self._revision = 0
        self._fresh = True
        self._due: float | None = None

    def begin(self) -> None:
        """Show all objects to the machines, once the kinds that this host waits for have one."""
        if self._waits_for and not self._api.has(self._waits_for):
            return
        # for good: when the last such object goes again, the machines have to hear of it
        self._waits_for = ()
        self._revision = self._api.tell_all(self._turns)

    def turn(self, now: float) -> bool:
        """Show the published changes, and send the machines' requests. Return whether there were any."""
        if self._waits_for:
            self.begin()
            if self._waits_for:
                return False
        revision = self._api.tell_news(self._turns, self._revision)
        news, self._fresh, self._revision = revision > self._revision or self._fresh, False, revision
        if not news and (self._due is None or self._due > now):
            return False
        asked = False
        for requests in self._turns.rounds(now, self._rounds):
            asked = True
            self._turns.answered([self._api.apply(request, now) for request in requests], now)
        # who asked may have more to ask, once the other hosts have had their turn
        self._fresh = asked and self._rounds < AGAIN_MOST
        # what is due changes by what is heard and asked, and by that alone
        self._due = self._turns.next_due()
        return news or asked

    def has_work(self, changed: AbstractSet[str], now: float) -> bool:
        """Return whether a turn may do anything: hear a change, ask again, or do what is due. `changed`: the kinds, and
        parts of them, of all changes since the host began or had its last turn.
        """
        if self._waits_for:
            return not changed.isdisjoint(self._waits_for)
        if self._fresh or (self._due is not None and self._due <= now):
            return True
        return not changed.isdisjoint(self._turns.kinds)

    def next_due(self) -> float | None:
        """Return when a machine has work without any change."""
        return self._due


def rest(hosts: Sequence[MachineHost], now: float, most: int) -> None:
    """Give the hosts turns, in order, until no host has changes, requests or due work; at most `most` rounds."""
    for _ in range(most):
        stirred = [host.turn(now) for host in hosts]
        if not any(stirred) and min([at for host in hosts if (at := host.next_due()) is not None], default=inf) > now:
            return
