# SPDX-License-Identifier: Apache-2.0
"""The common part of plugins that hand out devices: families of devices at a session's points.

A plugin says which families there are (`families_of`). Source: Volcano `plugins/deviceshare`, `plugins/predicates`
(AllocateFunc).
"""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pumice.core.devices.family import DeviceError
from pumice.core.devices.locks import NodeLocks
from pumice.core.life.task import ALLOCATED_STATUSES, TaskStatus
from pumice.core.messages.decisions import BindContext
from pumice.core.plugins.plugin import BuiltInPlugin, KnowsDevices
from pumice.core.session.points.nodes import Reads
from pumice.core.session.points.rules import ColumnRule
from pumice.core.session.reasons import Code, Reason

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from pumice.core.devices.family import Family, Notes
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.all_points import State
    from pumice.core.session.points.nodes import FloatArray, NodeScorer, Rows
    from pumice.core.session.points.rules import Check, Score
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.session import Session

# --- Assignments
# Volcano counts what a pod's annotations say when its node gets or loses it, and assigns devices in the event
# handlers of the plugin predicates, once its own reservations are made: without that plugin nothing is assigned. An
# eviction that is undone counts the pod again and assigns nothing. Source: Volcano `api/node_info.go` (AddTask,
# RemoveTask), `plugins/predicates` (AllocateFunc, DeallocateFunc).

ASSIGNER: Final = "predicates"
KEPT: Final = "terminating-pods-keep-cards"
UNCOUNTED: Final = (TaskStatus.RELEASING, TaskStatus.PIPELINED)
BACK: Final = (TaskStatus.RUNNING, TaskStatus.BOUND)


class Assignments:
    """The devices assigned in a session. `written`: the annotations of pods ("namespace/name"), without those taken
    back.
    """

    def __init__(self, session: Session, families: Sequence[Family]) -> None:
        self._session, self._families = session, families
        self._assigns = session.config.plugin(ASSIGNER) is not None

    def begin(self, locks: NodeLocks | None) -> None:
        """Begin a session: the families have only what pods on the nodes have."""
        self._locks = locks
        self._notes: dict[int, Notes] = {}  # task row -> its annotations as the session has them
        self._counted: set[int] = set()  # rows of tasks that were placed, and not only promised room
        self.written: dict[str, Notes] = {}
        self._count_residents()

    def _count_residents(self) -> None:
        snapshot, nodes = self._session.snapshot, self._session.nodes
        uncounted = (TaskStatus.PIPELINED,) if KEPT in self._session.config.pumice.fix else UNCOUNTED
        for family in self._families:
            for row in family.present.nonzero()[0].tolist():
                for task in snapshot.node_tasks.get(nodes.names[row], {}).values():
                    leaves = nodes.seen_status[task.row] in uncounted
                    family.resident(row, task, snapshot.annotations_of(task), leaves=leaves)

    def _of(self, task: Task, row: int) -> list[Family]:
        return self._concerned(self._families, task, row)

    @staticmethod
    def _concerned(families: Sequence[Family], task: Task, row: int) -> list[Family]:
        return [each for each in families if each.present[row] and each.concerns(task)]

    def _notes_of(self, task: Task) -> Notes:
        found = self._notes.get(task.row)
        if found is None:
            found = self._notes[task.row] = dict(self._session.snapshot.annotations_of(task))
        return found

    # --- as pods come and go

    def allocate(self, task: Task, node: int) -> str | None:
        """Assign devices to a pod that was put on a node. A returned text says why it cannot have them."""
        families = self._of(task, node)
        if not families:
            return None
        status = self._session.jobs.status[task.row]
        if status not in UNCOUNTED:
            # Remembered, since a pod that is only promised room counts nothing and must not be taken off.
            self._counted.add(task.row)
            for family in families:
                family.add(node, task, self._session.snapshot.annotations_of(task))
        if not self._assigns or status in BACK:
            return None
        return self._assign(task, node, families)

    def _assign(self, task: Task, row: int, families: Sequence[Family]) -> str | None:
        for family in families:
            try:
                said = family.assign(row, task, self._notes_of(task), self._session.clock.now)
            except DeviceError as error:
                # The lock in the way runs out at a known moment: the session is to look again then.
                if self._locks is not None and self._locks.earliest is not None:
                    self._session.wake(self._locks.earliest)
                return str(error)
            self.written.setdefault(task.key, {}).update(said)
        return None

    def deallocate(self, task: Task, node: int) -> str | None:
        """Take the devices of a pod that was taken off a node, or is to be evicted."""
        families = self._of(task, node)
        if not families:
            return None
        evicted = self._session.jobs.status[task.row] == TaskStatus.RELEASING
        if evicted or task.row in self._counted:
            self._counted.discard(task.row)
            for family in families:
                family.remove(node, task, self._session.snapshot.annotations_of(task))
        for family in families if self._assigns else ():
            for name in family.release(node, task, self._notes_of(task)):
                self._notes_of(task).pop(name, None)
                self.written.get(task.key, {}).pop(name, None)
        return None

    def owned(self) -> Iterator[tuple[Task, dict[str, float]]]:
        """Yield (task, amounts of its devices) of allocated tasks, in milli-units by resource."""
        jobs, snapshot = self._session.jobs, self._session.snapshot
        owning = [family for family in self._families if family.owns]
        # Every cycle asks. Where no kind of devices owns anything, no job is looked at.
        for job in jobs.in_order if owning else ():
            for status in ALLOCATED_STATUSES:
                for task in jobs.tasks_in(job, status):
                    if jobs.node[task.row] < 0:  # its node is gone
                        continue
                    for family in self._concerned(owning, task, jobs.node[task.row]):
                        amounts = family.owned(jobs.node[task.row], snapshot.annotations_of(task))
                        if amounts:
                            yield task, amounts

    def bind_context(self, task: Task) -> BindContext | None:
        """Return what the bind writes on the pod, and the locks that it sets on the node."""
        said = self.written.get(task.key)
        if not said:
            return None
        locks = () if self._locks is None else self._locks.of(self._session.jobs.node[task.row], task.uid)
        return BindContext(annotations=tuple(sorted(said.items())), locks=locks)


# --- Filter and scorer


class DeviceCodes:
    """The filter's answers for one task: of several kinds of devices the first one that is short is named."""

    def __init__(self, plugin: str, session: Session, families: Sequence[Family], task: Task) -> None:
        self._plugin, self._session, self._families, self._task = plugin, session, families, task
        self._rows = np.arange(session.nodes.count)

    def __call__(self, rows: Rows, /) -> IntArray:
        """Return the reason number per row (`Session.reasons`), 0 where the node passes."""
        asked = self._rows[rows]
        if self._session.points.shows_devices:
            self._note(rows)
        codes = np.zeros(len(asked), dtype=np.int32)
        for family in self._families:
            lacks = family.present[rows] & ~family.fitting(self._task, rows)
            places = (lacks & (codes == 0)).nonzero()[0]
            # One text for all nodes: it is interned once.
            if family.uniform and len(places):
                codes[places] = self._code(family, int(asked[places[0]]))
            else:
                codes[places] = [self._code(family, row) for row in asked[places].tolist()]
        return codes

    def one(self, row: int, /) -> int:
        """Return the reason number of one row, as each family gives it for many. It is asked for every node that
        something is placed on; without this function and that of the scores, an allocation of cards takes 1.2 times as
        long through columns of one (`bench cards`).
        """
        if self._session.points.shows_devices:
            self._note(slice(row, row + 1))
        for family in self._families:
            if family.present[row] and not family.fits(self._task, row):
                return self._code(family, row)
        return 0

    def _note(self, rows: Rows) -> None:
        """Note the scores that may go to a process outside."""
        for family in self._families:
            family.note_scores(self._task, rows)

    def _code(self, family: Family, row: int) -> int:
        text, is_error = family.refusal(self._task, row)
        return self._session.reasons.intern(Reason(self._plugin, Code.ERROR if is_error else Code.UNSCHEDULABLE, text))


class DeviceScores:
    """The scorer's answers for one task: the nodes' own, rounded, times the weight."""

    def __init__(self, families: Sequence[Family], task: Task, weight: int) -> None:
        self._families, self._task, self._weight = families, task, weight

    def __call__(self, rows: Rows, /) -> FloatArray:
        """Return the score per row, shape [len(rows)]."""
        total = self._families[0].scores(self._task, rows)
        for family in self._families[1:]:
            total = total + family.scores(self._task, rows)
        # Halves go up, as Go's math.Round has it of numbers that are not negative.
        scores: FloatArray = np.floor(total + 0.5) * self._weight
        return scores

    def one(self, row: int, /) -> float:
        """Return the score of one row, found as by `DeviceCodes.one`."""
        total = sum([family.score(self._task, row) for family in self._families])
        return floor(total + 0.5) * float(self._weight)


class Looking:
    """The common part of filter and scorer; `weight`: of the scores."""

    def __init__(self, plugin: str, families: Sequence[Family], weight: int = 0) -> None:
        self.name, self._families, self._weight = plugin, families, weight
        self.reads = Reads(kind=self._kind)

    def _kind(self, task: Task) -> Hashable:
        return tuple([family.kind(task) for family in self.concerned(task)])

    def concerned(self, task: Task) -> list[Family]:
        """Return the kinds of devices that a pod requests."""
        return [family for family in self._families if family.concerns(task)]


class DeviceFilter(Looking):
    """Passes the nodes that have the devices that a pod requests."""

    def prepare(self, session: Session, task: Task) -> Check | None:
        """Return the filter's answers; None for a pod that requests no devices."""
        families = self.concerned(task)
        # Another session has families of its own.
        return ColumnRule(DeviceCodes(self.name, session, families, task), lasts=False) if families else None


class DeviceScorer(Looking):
    """Scores how well nodes' devices would be used."""

    def prepare(self, session: Session, task: Task) -> Score | None:
        """Return the scorer's answers; None for a pod that requests no devices."""
        families = self.concerned(task)
        return ColumnRule(DeviceScores(families, task, self._weight), lasts=False) if families else None


# --- Dry runs
# Source: Volcano `plugins/predicates` (SimulatePredicate), `api/node_info.go`.


class DeviceTrials:
    """The plugin's part in a trial: the trial's `state` has the node's devices as the trial leaves them."""

    def __init__(self, plugin: str, session: Session, families: Sequence[Family]) -> None:
        self._plugin, self._session, self._families = plugin, session, families

    def _devices(self, tried: dict[str, Any], preemptor: Task, row: int) -> list[Family]:
        devices: list[Family] | None = tried.get(self._plugin)
        if devices is None:
            # Only what the preemptor asks for is copied.
            concerned = [each for each in self._families if each.present[row] and each.concerns(preemptor)]
            devices = tried[self._plugin] = [each.trial(row) for each in concerned]
        return devices

    def is_quiet(self, preemptor: Task) -> bool:
        """Return whether the preemptor asks for no devices."""
        return not any(each.concerns(preemptor) for each in self._families)

    def add(self, state: State, preemptor: Task, task: Task, node: int) -> str | None:
        """Put the task back on the node."""
        for each in self._devices(state, preemptor, node):
            each.add(0, task, self._session.snapshot.annotations_of(task))
        return None

    def remove(self, state: State, preemptor: Task, task: Task, node: int) -> str | None:
        """Remove the task from the node."""
        for each in self._devices(state, preemptor, node):
            each.remove(0, task, self._session.snapshot.annotations_of(task))
        return None

    def predicate(self, state: State, preemptor: Task, node: int) -> str | None:
        """Return which requested devices the node lacks as the trial stands; None when it lacks none."""
        for each in self._devices(state, preemptor, node):
            if not each.fits(preemptor, 0):
                where, why = self._session.nodes.names[node], each.refusal(preemptor, 0).text
                return f"device {each.name} cannot fit task {preemptor.key} on node {where}: {why}"
        return None


# --- The plugin


class DevicePlugin(KnowsDevices, BuiltInPlugin):
    """Hands out the devices of families. `locks`: a pod that gets devices locks its node; `weight`: of the scores; 0
    leaves the scorers out.
    """

    listens = ("Predicate", "NodeOrder")
    within_nodes = True
    locks = False
    weight = 0
    _assignments: Assignments | None = None

    def families_of(self, session: Session) -> list[Family]:
        """Return the families that count in a session, as if its nodes had no pods; of several short ones the first is
        named.
        """
        raise NotImplementedError

    def batch_scorers(self, families: Sequence[Family]) -> list[NodeScorer]:
        """Return scorers over the candidates as a set, for families that are not scored node by node."""
        return []

    def find_devices(self, session: Session) -> None:
        """Give the session the devices that there are, with what pods have of them already."""
        families, locks = self.families_of(session), self._locks(session)
        for family in families:
            family.locks = locks
        if self._assignments is None:
            self._found, self._assignments = families, Assignments(session, families)
        self._found[:] = families  # the list that all rules read: it outlives a session
        self._assignments.begin(locks)
        others, empty = session.devices, session.empty_devices
        session.devices = [*others, *families]
        session.empty_devices = lambda: [*empty(), *self.families_of(session)]

    def on_session_open(self, session: Session) -> None:
        """Register filter, scorer, event handlers and additions to binds, where any node has devices to share."""
        families, assignments = self._found, self._assignments
        if not families or assignments is None:
            return
        trials = DeviceTrials(self.name, session, families)
        points = session.points
        points.predicate.add(self.name, [DeviceFilter(self.name, families)])
        if self.weight > 0:
            points.node_order.add(self.name, [DeviceScorer(self.name, families, self.weight)])
            points.batch_node_order.add(self.name, self.batch_scorers(families))
        points.handle(assignments.allocate, assignments.deallocate)
        points.bind_context.add(self.name, assignments.bind_context)
        points.simulate_add_task.add(self.name, trials.add)
        points.simulate_remove_task.add(self.name, trials.remove)
        points.simulate_predicate.add(self.name, trials.predicate)
        points.simulates_nothing.add(self.name, trials.is_quiet)
        self.on_session_renew(session)

    def on_session_renew(self, session: Session) -> None:
        """Tell the devices of the session's pods."""
        if self._found and (assignments := self._assignments) is not None:
            session.tellers.owned.append(assignments.owned)
            session.tellers.annotated.append(lambda: assignments.written)

    def _locks(self, session: Session) -> NodeLocks | None:
        """Return the nodes' own locks, and those of binds in flight."""
        if not self.locks:
            return None
        nodes, coming = session.nodes, dict[str, dict[str, str]]()
        for node, needs in session.snapshot.promised.values():
            coming.setdefault(node, {}).update(needs.locks)

        def locks_of(row: int) -> Mapping[str, str]:
            return {**nodes.specs[row].annotations, **coming.get(nodes.names[row], {})}

        return NodeLocks(nodes.names, locks_of, session.clock.now)
