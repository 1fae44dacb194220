"""What is read off a view is what is in it, and only what the asker does not have."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.board import BoardReader, residents_of
from pumice.core.messages.boards import BoardRead, ReadBoard
from pumice.core.objects.metadata import Object
from pumice.core.state.view import View
from tests.kit.hyper_nodes import hyper_node
from tests.kit.jobs import gang
from tests.kit.nodes import node, nodes
from tests.kit.pods import pod


def view_of(*objects: Object) -> View:
    view = View()
    for obj in objects:
        view.apply("ADDED", obj)
    return view


def columns(read: BoardRead) -> tuple[dict[str, int], Any]:
    """The place of each resource, and the amounts."""
    assert read.layout is not None
    return {name: row for row, name in enumerate(read.layout.resources)}, read.columns(read.layout)


def test_what_is_used_releasing_being_bound_and_nominated() -> None:
    leaving = pod("leaving", group="g", cpu="2", node="n0")
    nominated = pod("nominated", group="g", cpu="3")
    nominated["status"]["nominatedNodeName"] = "n1"
    view = view_of(*nodes(2, gpus=4), *gang("g", pods=2, cpu="1"), leaving, nominated)
    view.evicting("default", "leaving")
    assert view.assume("default", "g-0", "n1")
    read = BoardReader().read(view, 1)
    resource, (used, releasing, binding, nominated_for) = columns(read)
    assert used[resource["cpu"]].tolist() == [2.0, 1.0]
    assert releasing[resource["cpu"]].tolist() == [2.0, 0.0]
    assert binding[resource["cpu"]].tolist() == [0.0, 1.0]
    assert nominated_for[resource["cpu"]].tolist() == [0.0, 3.0]
    assert nominated_for[resource["pods"]].tolist() == [0.0, 1.0]
    assert (read.binding, read.evicting) == (1, 1)
    assert read.pods == {"Pending": 2, "Binding": 1, "Releasing": 1}
    assert read.layout is not None
    assert read.layout.columns()[resource["nvidia.com/gpu"]].tolist() == [4.0, 4.0]


def test_pods_of_other_schedulers_are_counted() -> None:
    view = view_of(node("n0"), pod("mine", group="g"), pod("other", scheduler="other"), pod("gone", scheduler="other"))
    view.apply("DELETED", pod("gone", scheduler="other"))
    assert BoardReader().read(view, 1).pods == {"Pending": 2}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=30))
def test_used_is_the_sum_of_the_pods(placed: list[tuple[int, int]]) -> None:
    pods = [pod(f"p{number}", cpu=f"{cpu}00m", node=f"n{on}") for number, (on, cpu) in enumerate(placed)]
    read = BoardReader().read(view_of(*nodes(4), *pods), 1)
    resource, (used, *_) = columns(read)
    sums = [sum(cpu for on, cpu in placed if on == number) / 10 for number in range(4)]
    assert np.allclose(used[resource["cpu"]], sums)
    assert used[resource["pods"]].tolist() == [sum(on == number for on, _ in placed) for number in range(4)]


def test_only_what_the_asker_does_not_have() -> None:
    view, reader = view_of(*nodes(2)), BoardReader()
    first = reader.read(view, 1)
    again = reader.read(view, 1, ReadBoard(1, first.layout_version))
    assert (again.layout, again.amounts, again.pods) == (None, b"", {})
    view.apply("ADDED", pod("p", node="n0"))
    changed = reader.read(view, 2, ReadBoard(1, first.layout_version))
    assert changed.layout is None
    assert first.layout is not None
    assert changed.columns(first.layout)[0].tolist() != first.columns(first.layout)[0].tolist()
    view.apply("ADDED", node("n2"))
    grown = reader.read(view, 3, ReadBoard(2, first.layout_version))
    assert grown.layout is not None
    assert grown.layout.nodes == ["n0", "n1", "n2"]


def test_nodes_come_in_name_order_whatever_order_they_came_in() -> None:
    read = BoardReader().read(view_of(node("b"), node("a", unschedulable=True), pod("p", node="b", cpu="2")), 1)
    assert read.layout is not None
    assert (read.layout.nodes, list(read.layout.cordoned)) == (["a", "b"], [1, 0])
    resource, (used, *_) = columns(read)
    assert used[resource["cpu"]].tolist() == [0.0, 2.0]


def test_groups_are_hyper_nodes_else_places() -> None:
    racks = [hyper_node("r0", 1, nodes=["n0"]), hyper_node("spine", 2, children=["r0"])]
    placed = view_of(*nodes(2), *racks)
    layout = BoardReader().read(placed, 1).layout
    assert layout is not None
    assert [layout.groups[group] for group in layout.group] == [["spine", "r0"], []]
    labels = {"topology.kubernetes.io/zone": "z", "rack": "7"}
    labelled = BoardReader().read(view_of(node("n0", labels=labels), node("n1", ready=False)), 1).layout
    assert labelled is not None
    assert [labelled.groups[group] for group in labelled.group] == [["z", "7"], []]
    assert list(labelled.ready) == [1, 0]


def test_no_nodes_at_all() -> None:
    read = BoardReader().read(view_of(), 1)
    _, amounts = columns(read)
    assert amounts.shape == (4, 0, 0)


def test_the_pods_of_a_node() -> None:
    view = view_of(*nodes(1), *gang("g", pods=1, cpu="500m", nodes=["n0"], phase="Running"))
    (found,) = residents_of(view, "n0").pods
    assert (found.pod, found.job, found.status) == ("default/g-0", "default/g", "Running")
    assert found.asks["cpu"] == 0.5
    assert not residents_of(view, "nowhere").known


def test_limits_of_volumes_are_no_resource_to_show() -> None:
    view = view_of(node("n0", extra={"attachable-volumes-csi-x.dev": "25", "example.com/thing": "1"}))
    layout = BoardReader().read(view, 1).layout
    assert layout is not None
    assert layout.resources == ["cpu", "memory", "pods", "example.com/thing"]
