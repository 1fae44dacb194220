# SPDX-License-Identifier: Apache-2.0
"""The board: where pods and amounts are, read from a view for pictures; the view does not change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from pumice.core.life.pod_group import PodGroupPhase
from pumice.core.life.task import TaskStatus
from pumice.core.messages.boards import BoardLayout, BoardPod, BoardRead, ReadBoard, ResidentsRead
from pumice.core.messages.queue_tables import told
from pumice.core.objects.hyper_node import read_hyper_node
from pumice.core.objects.metadata import conditions_of
from pumice.core.state.dimensions import MEMORY, PODS
from pumice.core.state.hypernodes import TOP, build_tree
from pumice.core.state.tasks import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.core.objects.node import NodeSpec
    from pumice.core.objects.pod import Task
    from pumice.core.state.dimensions import FloatArray
    from pumice.core.state.view import View

# --- The layout

# --- Amounts of nodes

Rows = npt.NDArray[np.intp]

VOLUMES: Final = "attachable-volumes-"


def worth_showing(view: View) -> list[int]:
    """Return the dimensions that any node has; the limit of attached volumes is not an amount and is left out."""
    names = view.dimensions.names
    most = view.nodes.allocatable[:, : view.nodes.count].max(axis=1, initial=0.0)
    places: list[int] = np.flatnonzero(most[: len(view.dimensions)]).tolist()
    return [place for place in places if not names[place].startswith(VOLUMES)]


def _in_rows(view: View, columns: FloatArray, shown: Sequence[int], rows: Rows) -> FloatArray:
    """Return columns of nodes in units for people: cpu in cores, memory in bytes, all others in pieces."""
    scale = np.array([1.0 if number in (MEMORY, PODS) else 1000.0 for number in shown])
    chosen: FloatArray = columns[np.ix_(np.array(shown, dtype=np.intp), rows)] / scale[:, None]
    return chosen


def amounts_of(view: View, rows: Rows, shown: Sequence[int]) -> bytes:
    """Return float64 [4, resource, node]: used, the parts of it that are releasing and being bound, and nominated."""
    tasks, nodes = view.tasks.status[: view.tasks.rows.used], view.nodes
    found = np.zeros((4, len(shown), len(rows)))
    used = nodes.used.copy()
    used[PODS, : nodes.count] = nodes.pod_count[: nodes.count]
    found[0] = _in_rows(view, used, shown, rows)
    if nodes.releasing.any():
        found[1] = _in_rows(view, nodes.releasing, shown, rows)
    for part, placed in (
        (2, _binding(view, np.flatnonzero(tasks == TaskStatus.BINDING).tolist())),
        (3, _nominated(view, np.flatnonzero(tasks == TaskStatus.PENDING).tolist())),
    ):
        if (sums := _sums(view, placed)) is not None:
            found[part] = _in_rows(view, sums, shown, rows)
    return found.tobytes()


def _sums(view: View, placed: Iterator[tuple[Task, int]]) -> FloatArray | None:
    """Return the sums of requests by node; None when no task has requests."""
    found: FloatArray | None = None
    for task, node in placed:
        if found is None:
            found = np.zeros_like(view.nodes.used)
        for dimension, value in task.template.items:
            found[dimension, node] += value
    return found


def _binding(view: View, rows: Sequence[int]) -> Iterator[tuple[Task, int]]:
    """Yield the pods that are being bound, each with the row of its node, where they count as used."""
    for row in rows:
        task, node = view.tasks.handles[row], view.tasks.node_at[row]
        if task is not None and node >= 0:
            yield task, node


def _nominated(view: View, rows: Sequence[int]) -> Iterator[tuple[Task, int]]:
    """Yield the pods that wait for room on a nominated node, each with that node's row."""
    for row in rows:
        task = view.tasks.handles[row]
        if task is not None and task.nominated and task.nominated in view.nodes.row:
            yield task, view.nodes.row[task.nominated]


PLACES: Final = (
    ("topology.kubernetes.io/region",),
    ("topology.kubernetes.io/zone", "zone"),
    ("topology.kubernetes.io/rack", "rack"),
)
"""Labels that say where a node stands, from wide to narrow; the first of a row that it has."""

LayoutVersion = tuple[int, ...]


def layout_version(view: View) -> LayoutVersion:
    """Return a version that changes whenever the layout may change."""
    versions = view.others.versions
    return (*view.nodes.versions.values(), versions.get("HyperNode", 0), len(view.dimensions))


def layout_of(view: View, rows: Rows) -> BoardLayout:
    """Return the layout of the nodes of these rows, in this order."""
    numbers: list[int] = rows.tolist()
    specs = [view.nodes.specs[row] for row in numbers]
    paths = _by_hyper_node(view, specs) or [_by_labels(spec) for spec in specs]
    places = {path: number for number, path in enumerate(sorted(set(paths)))}
    shown = worth_showing(view)
    return BoardLayout(
        [view.dimensions.names[each] for each in shown],
        [spec.name for spec in specs],
        [list(path) for path in places],
        [places[path] for path in paths],
        bytes(spec.unschedulable for spec in specs),
        bytes(_ready(spec) for spec in specs),
        _in_rows(view, view.nodes.allocatable, shown, rows).tobytes(),
    )


def _by_hyper_node(view: View, specs: Sequence[NodeSpec]) -> list[tuple[str, ...]]:
    """Group nodes by HyperNode; None without HyperNodes, or where they form no tree."""
    objects = view.others.by_kind.get("HyperNode") or {}
    tree = build_tree([read_hyper_node(each) for each in objects.values()], specs) if objects else None
    if tree is None or tree.problem or tree.is_trivial:
        return []
    paths = {name: tuple(each for each in reversed(tree.ancestors(name)) if each != TOP) for name in tree.domains}
    found: list[tuple[str, ...]] = [()] * len(specs)
    # The wide domains first, so that a node keeps its narrowest one, written last.
    for name in sorted(tree.domains, key=lambda each: len(paths[each])):
        for row in tree.domains[name].rows.tolist():
            found[row] = paths[name]
    return found


def _by_labels(spec: NodeSpec) -> tuple[str, ...]:
    named = (next((spec.labels[label] for label in row if label in spec.labels), "") for row in PLACES)
    return tuple(name for name in named if name)


def _ready(spec: NodeSpec) -> bool:
    """Return whether the node's kubelet says that it is ready; a node that does not say counts as ready."""
    return all(each.get("type") != "Ready" or each.get("status") == "True" for each in conditions_of(spec.node))


def in_name_order(view: View) -> Rows:
    """Return rows of nodes by name: a view sorts its nodes only when a snapshot is taken."""
    specs = view.nodes.specs
    rows = range(len(specs))
    return np.array(rows if view.nodes.sorted else sorted(rows, key=lambda row: specs[row].name), dtype=np.intp)


NOTHING_SEEN = ReadBoard()


class BoardReader:
    """Reads the board and remembers the view's layout version of the last read. `version` may rise across views."""

    def __init__(self) -> None:
        self._layout: BoardLayout | None = None
        self._of: tuple[int, LayoutVersion] | None = None
        self._number = 0
        self._rows: Rows = np.zeros(0, dtype=np.intp)

    def read(self, view: View, version: int, asked: ReadBoard = NOTHING_SEEN) -> BoardRead:
        """Return the board of the view at that version."""
        if version == asked.version:
            return BoardRead(version, asked.layout)
        layout = self._newest_layout(view)
        return BoardRead(
            version,
            self._number,
            None if asked.layout == self._number else layout,
            amounts_of(view, self._rows, worth_showing(view)),
            _pods(view),
            _jobs(view),
            *view.on_their_way,
        )

    def _newest_layout(self, view: View) -> BoardLayout:
        # The id, too: another view may count the same versions.
        of = (id(view), layout_version(view))
        if self._layout is None or of != self._of:
            self._rows = in_name_order(view)
            self._layout, self._of = layout_of(view, self._rows), of
            self._number += 1
        return self._layout


def residents_of(view: View, node: str) -> ResidentsRead:
    """Return the pods on a node, by name."""
    if node not in view.nodes.row:
        return ResidentsRead(node, known=False)
    tasks = view.residents.node_tasks.get(node, {})
    return ResidentsRead(node, True, tuple(_resident(view, tasks[key]) for key in sorted(tasks)))


def _resident(view: View, task: Task) -> BoardPod:
    names = view.dimensions.names
    asks = {
        names[number]: told(names[number], value) for number, value in task.template.items if value and number != PODS
    }
    status = TaskStatus(view.tasks.status_at[task.row]).label
    return BoardPod(task.key, task.job, status, task.priority, asks, task.created)


def _pods(view: View) -> dict[str, int]:
    """Count pods by status, those of other schedulers included, which are in no job before they have a node."""
    tasks, counts = view.tasks, view.jobs.counts.sum(axis=1).tolist()
    for row in np.flatnonzero(tasks.job[: tasks.rows.used] == NOWHERE).tolist():
        if tasks.handles[row] is not None:  # a freed row has none
            counts[tasks.status_at[row]] += 1
    return {each.label: counts[each] for each in TaskStatus if counts[each]}


def _jobs(view: View) -> dict[str, int]:
    jobs, rows = view.jobs, view.jobs.in_key_order()
    # A PodGroup without a phase waits to be admitted, as a pending one does.
    phases = np.maximum(jobs.phase[rows][jobs.has_spec[rows]], PodGroupPhase.PENDING.value)
    counts: list[int] = np.bincount(phases, minlength=len(PodGroupPhase)).tolist()
    return {each.label: counts[each] for each in PodGroupPhase if counts[each]}
