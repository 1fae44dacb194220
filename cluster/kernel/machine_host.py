"""Node agents and controllers without waiting: their machines see the changes and return their requests immediately."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.api.store import Store
from pumice.cluster.kernel.turns import Turns
from pumice.cluster.machine import Machine
from pumice.storage.shared_objects import SharedObjects

AT_ONCE: Final = 1 << 30


class MachineHost:
    """Machines on one reading of the log of a local store.

    `waits_for`: kinds; an object of one of them must exist before any other kind is looked at.
    """

    def __init__(
        self, store: Store, objects: SharedObjects, machines: Sequence[Machine], waits_for: Sequence[str] = ()
    ) -> None:
        self._store, self._objects, self._turns = store, objects, Turns(machines)
        self._waits_for = tuple(waits_for)
        self._revision = 0
        self._fresh = True
        self._due: float | None = None

    def begin(self) -> None:
        """Show all objects to the machines, once the kinds that this host waits for have one."""
        if self._waits_for and not any(map(self._store.tables.count, self._waits_for)):
            return
        self._waits_for = ()
        self._revision = self._store.revision
        for kind in self._turns.whole_kinds:
            for _, record in self._store.tables.of_kind(kind):
                self._turns.observe(kind, self._store.tables.seen(record), record.revision)

    def turn(self, now: float) -> None:
        """Show the published changes, and send the machines' requests."""
        if self._waits_for:
            self.begin()
            if self._waits_for:
                return
        news, self._fresh = self._hear() or self._fresh, False
        if not news and (self._due is None or self._due > now):
            return
        for requests in self._turns.rounds(now):
            self._turns.answered([self._store.apply(request, now) for request in requests], now)  # type: ignore[arg-type]
        # what is due changes by what is heard and asked, and by that alone
        self._due = self._turns.next_due()

    def _hear(self) -> bool:
        kinds = self._turns.kinds
        if self._store.log.head(kinds) <= self._revision:
            return False
        more = True
        while more:
            found = self._store.log.read(self._revision, kinds, AT_ONCE)
            self._turns.tell(found.events, self._objects.unpack)
            self._revision, more = found.revision, found.more
        return True

    def next_due(self) -> float | None:
        """Return when a machine has work without any change."""
        return self._due
