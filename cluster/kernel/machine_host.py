"""Node agents and controllers without actors: their machines, told what is new and asked what they want, in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pumice.cluster.api.store import Store
from pumice.cluster.machine import AGAIN_MOST, Machine
from pumice.core.objects.metadata import Object
from pumice.core.objects.parts import kind_of
from pumice.storage.shared_objects import SharedObjects

AT_ONCE: Final = 1 << 30


class MachineHost:
    """Machines on one reading of the log, as `actors.runtime.reconciler.Reconciler` runs them (`waits_for` too)."""

    def __init__(
        self, store: Store, objects: SharedObjects, machines: Sequence[Machine], waits_for: Sequence[str] = ()
    ) -> None:
        self._store, self._objects, self._machines = store, objects, tuple(machines)
        self._waits_for = tuple(waits_for)
        self._kinds = tuple(dict.fromkeys(kind for machine in machines for kind in machine.kinds))
        self._interested = {
            kind: [each for each in machines if kind in map(kind_of, each.kinds)] for kind in map(kind_of, self._kinds)
        }
        self._revision = 0
        self._fresh = True
        self._due: float | None = None

    def begin(self) -> None:
        """Hear of all there is, unless there is no object yet of the kinds that this one waits for."""
        if self._waits_for and not any(map(self._store.tables.count, self._waits_for)):
            return
        self._waits_for = ()
        self._revision = self._store.revision
        for kind in self._interested:
            for _, record in self._store.tables.of_kind(kind):
                self._observe(kind, self._store.tables.seen(record), record.revision)

    def turn(self, now: float) -> None:
        """Hear what was published, ask what is to be asked."""
        if self._waits_for:
            self.begin()
            if self._waits_for:
                return
        news, self._fresh = self._hear() or self._fresh, False
        if not news and (self._due is None or self._due > now):
            return
        asking: Sequence[Machine] = self._machines
        for _ in range(AGAIN_MOST):
            asking = [machine for machine in asking if self._asked(machine, now)]
            if not asking:
                break
        # what is due changes by what is heard and asked, and by that alone
        self._due = min((at for machine in self._machines if (at := machine.next_due()) is not None), default=None)

    def _hear(self) -> bool:
        if self._store.log.head(self._kinds) <= self._revision:
            return False
        found = self._store.log.read(self._revision, self._kinds, AT_ONCE)
        while found.more:
            self._tell(found.events)
            found = self._store.log.read(found.revision, self._kinds, AT_ONCE)
        self._tell(found.events)
        self._revision = found.revision
        return True

    def _tell(self, events: Sequence[Any]) -> None:
        for event in events:
            obj = self._objects.unpack(event.blob)
            self._observe(event.kind, obj, event.revision, deleted=event.type == "DELETED")

    def _observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        for machine in self._interested[kind]:
            machine.observe(kind, obj, revision, deleted=deleted)

    def _asked(self, machine: Machine, now: float) -> bool:
        requests = machine.step(now)
        replies = [self._store.apply(request, now) for request in requests]  # type: ignore[arg-type]
        for request, reply in zip(requests, replies, strict=True):
            machine.answered(request, reply, now)
        return bool(requests)

    def next_due(self) -> float | None:
        """When there is something to do though nothing changed; None: never."""
        return self._due
