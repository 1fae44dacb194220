"""Node agents and controllers without actors: their machines, told what is new and asked what they want, in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pumice.actors.agents.cell_reports import CellReportsMachine
from pumice.actors.agents.device_plugin import DevicePluginMachine
from pumice.actors.agents.machine import NodeAgentsMachine
from pumice.actors.api.store import Store
from pumice.actors.controllers.devices.machine import DeviceMachine
from pumice.actors.controllers.groups.machine import PodGroupMachine
from pumice.actors.controllers.jobs.machine import JobMachine
from pumice.actors.controllers.nodes.machine import NodeTaintsMachine
from pumice.actors.controllers.queues.machine import QueueMachine
from pumice.actors.controllers.volumes.drivers import DriversMachine
from pumice.actors.controllers.volumes.machine import VolumeMachine
from pumice.actors.controllers.volumes.pod_claims import PodClaimsMachine
from pumice.actors.runtime.reconciler import AGAIN_MOST, Machine
from pumice.actors.system.roles.controllers import (
    BUDGETS,
    FLOWS,
    WORKLOADS,
    budget_machines,
    flow_machines,
    workload_machines,
)
from pumice.core.objects.metadata import Object
from pumice.core.objects.parts import kind_of
from pumice.storage.shared_objects import SharedObjects

AT_ONCE: Final = 1 << 30


class Controller:
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


def controllers(
    store: Store, objects: SharedObjects, default_duration_s: float, fixes: Sequence[str] = ()
) -> list[Controller]:
    """Return what a running system has that watches nothing but its store: the same machines in the same rooms;
    `fixes`: defects that are mended.
    """
    cells = CellReportsMachine()
    agents = NodeAgentsMachine(default_duration_s=default_duration_s, ended=cells.pod_ended)
    given: list[tuple[Sequence[Machine], Sequence[str]]] = [
        ([agents, DevicePluginMachine(), cells], ()),
        ([JobMachine(objects.unpack, fixes=lambda: fixes)], ()),
        ([PodGroupMachine()], ()),
        ([QueueMachine(objects.unpack)], ()),
        ([PodClaimsMachine(), VolumeMachine(), DriversMachine(), DeviceMachine(), NodeTaintsMachine(agents=True)], ()),
        (budget_machines(), BUDGETS),
        ([*workload_machines(), *flow_machines(lambda: fixes)], (*WORKLOADS, *FLOWS)),
    ]
    return [Controller(store, objects, machines, waits_for) for machines, waits_for in given]
