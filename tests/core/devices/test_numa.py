"""CPUs by topology, hints and policies, and who counts as Guaranteed."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.devices.numa.hints import asked_by, free_of, given_on, is_guaranteed, judged, take
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
    assert judged(node, free, wanted) == (cells, admitted)
    assert judged(node, None, 0)[1]  # who asks for no whole CPU is let in


def test_reserved_cpus_are_nobody_s() -> None:
    node, free = topology("best-effort", reserved=1), cpus_of("0-7")
    assert text_of(given_on(node, frozenset({0}), free, 2)) == "2-3"
    assert text_of(given_on(node, frozenset({0}), free, 5)) == "1-5"  # what the cell lacks comes from elsewhere
    assert given_on(node, frozenset({0}), free, 8) == frozenset()


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Nodes whose CPUs are numbered as Linux does: all first threads of cores, then all second ones."""
    cells, per_cell, threads = draw(st.integers(1, 5)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    cores = cells * per_cell
    places = {
        cpu: CpuPlace(cpu % cores // per_cell, cpu % cores // per_cell, cpu % cores) for cpu in range(cores * threads)
    }
    policy = draw(st.sampled_from(["best-effort", "restricted", "single-numa-node"]))
    return Topology(places, draw(st.integers(0, 2)), "static", policy, {})


@given(topologies(), st.integers(1, 9))
def test_cpus_of_an_unused_node_are_taken_by_whole_cores(node: Topology, cores: int) -> None:
    threads = Counter(place.core for place in node.places.values())[0]
    found = take(node.places, frozenset(node.places), cores * threads)
    if found is None:
        assert cores * threads > len(node.places)
        return
    taken = Counter(node.places[cpu].core for cpu in found)
    assert set(taken.values()) == {threads}
    assert len(taken) == cores


@given(topologies(), st.lists(st.integers(1, 5), max_size=5), st.randoms(use_true_random=False))
def test_cpus_are_given_whole_and_to_one_container_each(node: Topology, asked: list[int], random: Random) -> None:
    available, given_out, none = frozenset(node.places), list[frozenset[int]](), frozenset[int]()
    for wanted in asked:
        left = free_of(node, available)
        cells = frozenset(random.sample(node.cells, random.randint(1, len(node.cells))))
        found = given_on(node, cells, available, wanted)
        near = sum(1 for cpu in left if node.places[cpu].cell in cells)
        assert len(found) == (wanted if wanted <= len(left) else 0)
        assert found <= left
        assert not found or sum(1 for cpu in found if node.places[cpu].cell in cells) == min(wanted, near)
        given_out.append(found)
        available -= found
    assert len(none.union(*given_out)) == sum(map(len, given_out))
    assert all(len(found & free_of(node, frozenset(node.places))) == len(found) for found in given_out)  # none reserved


@given(topologies(), st.data())
def test_policy_takes_the_best_of_all_sets_of_cells(node: Topology, data: st.DataObject) -> None:
    """Preferred are sets that are no larger than an unused node would need; then the narrowest and lowest counts."""
    available = frozenset(data.draw(st.sets(st.sampled_from(sorted(node.places)))))
    wanted = data.draw(st.integers(1, len(node.places)))
    free = Counter(node.places[cpu].cell for cpu in free_of(node, available))
    whole = Counter(place.cell for place in node.places.values())
    sets = [{cell for cell in node.cells if bits >> cell & 1} for bits in range(1, 2 ** len(node.cells))]
    least = min(len(cells) for cells in sets if sum(whole[cell] for cell in cells) >= wanted)
    enough = [cells for cells in sets if sum(free[cell] for cell in cells) >= wanted]
    preferred = [cells for cells in enough if len(cells) == least]
    others = [] if node.policy == "single-numa-node" else enough
    if node.policy == "single-numa-node":
        preferred = [cells for cells in preferred if len(cells) == 1]
    listed = sorted(preferred or others, key=lambda cells: (len(cells), sum(1 << cell for cell in cells)))
    admitted = node.policy == "best-effort" or bool(preferred)
    assert judged(node, available, wanted) == (frozenset(listed[0] if listed else node.cells), admitted)


@pytest.mark.parametrize("numbers", [range(64), range(10**12, 10**12 + 64)], ids=["dozens", "of any number"])
def test_dozens_of_cells_are_judged_in_one_pass(numbers: range) -> None:
    """They have 2^64 sets, and a mask of their numbers as many bits."""
    places = {cpu: CpuPlace(cell, cell, cpu) for at, cell in enumerate(numbers) for cpu in (2 * at, 2 * at + 1)}
    node = Topology(places, 0, "static", "best-effort", {})
    free = frozenset(places) - {0}
    assert judged(node, free, 64) == (frozenset(numbers[1:33]), True)
    assert judged(node, free, 127) == (frozenset(numbers), True)


@pytest.mark.parametrize("said", [None, "x", 5, ["x"], [{}], [{"uid": "", "name": ""}]])
def test_topology_with_odd_allocations_has_none(said: object) -> None:
    assert read_topology({"spec": {"podAllocations": said}}).assigned == frozenset()


def test_topology_names_the_pods_that_have_their_cpus() -> None:
    said = [{"uid": "u", "namespace": "ns", "name": "p"}, {"name": "q"}]
    assert read_topology({"spec": {"podAllocations": said}}).assigned == {"u", "ns/p", "/q"}


@pytest.mark.parametrize(("said", "reserved"), [(None, 0), ("1", 1), ("1001m", 2), ("much", 0)])
def test_topology_rounds_reserved_cpus_up(said: object, reserved: int) -> None:
    assert read_topology({"spec": {"resReserved": {"cpu": said}}}).reserved == reserved


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
        (asking({"requests": BOTH, "limits": BOTH}, initContainers=[{"resources": {"requests": BOTH}}]), False),
        (asking({"requests": {"cpu": "2000m", "memory": "1024Mi"}, "limits": BOTH}), True),
        (asking({"requests": {**BOTH, "nvidia.com/gpu": "1"}, "limits": BOTH}), True),  # only cpu and memory count
        (asking({"requests": {"cpu": "0", "memory": "1Gi"}, "limits": {"cpu": "0", "memory": "1Gi"}}), False),
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
