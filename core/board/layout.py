"""Which nodes there are, and in which groups they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.board.amounts import told, worth_showing
from pumice.core.messages.boards import BoardLayout
from pumice.core.objects.hyper_node import read_hyper_node
from pumice.core.objects.metadata import section
from pumice.core.state.hypernodes import TOP, build_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.board.amounts import Rows
    from pumice.core.objects.node import NodeSpec
    from pumice.core.state.view import View

PLACES: Final = (
    ("topology.kubernetes.io/region",),
    ("topology.kubernetes.io/zone", "zone"),
    ("topology.kubernetes.io/rack", "rack"),
)
"""Labels that say where a node stands, from wide to narrow; the first of a row that it has."""

LayoutVersion = tuple[int, ...]


def layout_version(view: View) -> LayoutVersion:
    """Another one when the layout may be another one."""
    versions = view.others.versions
    return (*view.nodes.versions.values(), versions.get("HyperNode", 0), len(view.dimensions))


def layout_of(view: View, rows: Rows) -> BoardLayout:
    """The nodes of these rows, in this order."""
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
        told(view, view.nodes.allocatable, shown, rows).tobytes(),
    )


def _by_hyper_node(view: View, specs: Sequence[NodeSpec]) -> list[tuple[str, ...]]:
    """Nothing where there are no HyperNodes, or they make no tree."""
    objects = view.others.by_kind.get("HyperNode") or {}
    tree = build_tree([read_hyper_node(each) for each in objects.values()], specs) if objects else None
    if tree is None or tree.problem or tree.is_trivial:
        return []
    paths = {name: tuple(each for each in reversed(tree.ancestors(name)) if each != TOP) for name in tree.domains}
    found: list[tuple[str, ...]] = [()] * len(specs)
    for name in sorted(tree.domains, key=lambda each: len(paths[each])):
        for row in tree.domains[name].rows.tolist():
            found[row] = paths[name]
    return found


def _by_labels(spec: NodeSpec) -> tuple[str, ...]:
    named = (next((spec.labels[label] for label in row if label in spec.labels), "") for row in PLACES)
    return tuple(name for name in named if name)


def _ready(spec: NodeSpec) -> bool:
    """Whether its kubelet says so; one that says nothing is."""
    conditions = section(spec.node, "status").get("conditions") or ()
    return all(each.get("type") != "Ready" or each.get("status") == "True" for each in conditions)


def in_name_order(view: View) -> Rows:
    """Rows of nodes by name: a view brings them into order when a snapshot is taken, and not before."""
    specs = view.nodes.specs
    rows = range(len(specs))
    return np.array(rows if view.nodes.sorted else sorted(rows, key=lambda row: specs[row].name), dtype=np.intp)
