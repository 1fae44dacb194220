"""CPUs by topology, hints and policies, and who counts as Guaranteed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.devices.numa.hints import asked_by, given_on, hints, is_guaranteed, judged, take
from pumice.core.devices.numa.topology import CpuPlace, Topology, cpus_of, read_topology, text_of
from pumice.core.objects.pod import TemplateTable, read_task
from pumice.core.state.dimensions import Dimensions
from tests.kit import pod

CPUS = st.frozensets(st.integers(0, 40), max_size=20)
TWO_CELLS = {cpu: CpuPlace(cpu // 4, cpu // 4, cpu // 2) for cpu in range(8)}  # two sockets of two cores of two threads


def topology(policy: str, reserved: int = 0) -> Topology:
    return Topology(TWO_CELLS, reserved, "static", policy, {})


@given(CPUS)
def test_a_set_comes_back_from_its_text(cpus: frozenset[int]) -> None:
    assert cpus_of(text_of(cpus)) == cpus


@pytest.mark.parametrize(
    ("text", "cpus"), [("", []), ("3", [3]), ("0,3-5", [0, 3, 4, 5]), ("5-3", []), ("a", []), ("1,,2", [])]
)
def test_texts_of_cpus(text: str, cpus: list[int]) -> None:
    assert sorted(cpus_of(text)) == cpus


def test_more_cpus_than_there_can_be_are_none() -> None:
    """Each would be counted: a range up to 10^15 would take all memory."""
    assert cpus_of("0-999999999999999") == frozenset()


def test_an_object_leaves_out_what_is_zero() -> None:
    spec = {
        "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "restricted"},
        "resReserved": {"cpu": "1500m"},
        "numares": {"cpu": {"allocatable": "0-1", "capacity": 2}},
        "cpuDetail": {"0": {}, "1": {"numa": 1, "socket": 1, "core": 2}},
    }
    found = read_topology({"kind": "Numatopology", "spec": spec})
    assert found.places == {0: CpuPlace(0, 0, 0), 1: CpuPlace(1, 1, 2)}
    assert (found.reserved, found.cpu_policy, found.policy, found.cells) == (2, "static", "restricted", [0, 1])
    assert found.allocatable == {"cpu": frozenset({0, 1})}


@pytest.mark.parametrize(
    ("available", "wanted", "taken"),
    [
        ("0-7", 4, "0-3"),  # a socket
        ("0-7", 2, "0-1"),  # a core
        ("1-7", 1, "1"),  # a thread of the core of which least is left
        ("0-7", 5, "0-4"),
        ("0,2-7", 2, "0,2"),  # a core of which a thread is gone goes for a whole one
        ("0-1", 3, None),
        ("", 0, ""),
    ],
)
def test_cpus_are_taken_by_topology(available: str, wanted: int, taken: str | None) -> None:
    found = take(TWO_CELLS, cpus_of(available), wanted)
    assert (None if found is None else text_of(found)) == taken


@given(st.frozensets(st.integers(0, 9), max_size=10), st.integers(0, 9))
def test_so_many_of_the_available_ones_are_taken(available: frozenset[int], wanted: int) -> None:
    found, known = take(TWO_CELLS, available, wanted), available & TWO_CELLS.keys()
    assert (found is None) == (wanted > len(known))
    assert found is None or (found <= known and len(found) == wanted)


@pytest.mark.parametrize(
    ("policy", "available", "wanted", "cells", "admitted"),
    [
        ("single-numa-node", "0-7", 4, {0}, True),
        ("single-numa-node", "0-1,4-7", 3, {1}, True),
        ("single-numa-node", "0-1,4-5", 3, {0, 1}, False),
        ("single-numa-node", "0-7", 6, {0, 1}, False),
        ("restricted", "0-7", 6, {0, 1}, True),  # no single cell could ever have it
        ("restricted", "0-1,4-5", 3, {0, 1}, False),
        ("best-effort", "0-1,4-5", 3, {0, 1}, True),
        ("best-effort", "0-1", 3, {0, 1}, True),
        ("none", "0-1", 3, None, True),
    ],
)
def test_policies(policy: str, available: str, wanted: int, cells: set[int] | None, admitted: bool) -> None:
    node, free = topology(policy), cpus_of(available)
    assert judged(node, hints(node, free, wanted)) == (cells, admitted)
    assert judged(node, None)[1]  # who asks for no whole CPU is let in


def test_reserved_cpus_are_nobody_s() -> None:
    node, free = topology("best-effort", reserved=1), cpus_of("0-7")
    assert text_of(given_on(node, frozenset({0}), free, 2)) == "2-3"
    assert text_of(given_on(node, frozenset({0}), free, 5)) == "1-5"  # what the cell lacks comes from elsewhere
    assert given_on(node, frozenset({0}), free, 8) == frozenset()


def asking(*containers: dict[str, Any], **spec: Any) -> Any:
    made = pod("p")
    made["spec"] |= {"containers": [{"name": f"c{i}", "resources": each} for i, each in enumerate(containers)], **spec}
    return read_task(made, 0, TemplateTable(Dimensions())).template


BOTH = {"cpu": "2", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("template", "guaranteed"),
    [
        (asking({"requests": BOTH, "limits": BOTH}), True),
        (asking({"requests": BOTH, "limits": BOTH}, {"requests": BOTH}), False),
        (asking({"requests": BOTH}), False),
        (asking({"requests": {**BOTH, "cpu": "1"}, "limits": BOTH}), False),
        (asking({"requests": BOTH, "limits": {"cpu": "2"}}), False),
        (asking({}), False),
        (asking({}, resources={"requests": BOTH, "limits": BOTH}), True),
        (asking({"requests": BOTH, "limits": BOTH}, resources={"requests": BOTH}), False),
    ],
)
def test_who_is_guaranteed(template: Any, guaranteed: bool) -> None:
    assert is_guaranteed(template) is guaranteed


def test_containers_ask_for_whole_cpus() -> None:
    asked = asked_by(asking({"requests": {"cpu": "2"}}, {"requests": {"cpu": "1500m"}}, {}))
    assert [(each.name, each.cpus) for each in asked] == [("c0", 2), ("c1", 0), ("c2", 0)]
