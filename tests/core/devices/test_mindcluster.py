"""Virtual NPUs by MindCluster: what is reported of nodes, which chips pods get, and how nodes are scored together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.devices.ascend import CORE, MindClusterNpu, Reports, Resident, npu_node, shares
from pumice.core.devices.family import DeviceError
from pumice.core.objects.metadata import Object
from pumice.core.objects.node import read_node
from tests.core.devices.cards import chip_node, limited
from tests.kit import node

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task

JOB = {"ring-controller.atlas": "ascend-310P"}


def report(name: str, chips: int = 2, more: dict[str, str] | None = None) -> dict[str, Object]:
    listed = {"huawei.com/Ascend310P": ",".join(f"Ascend310P-{number}" for number in range(chips)), **(more or {})}
    said = {"DeviceInfo": {"DeviceList": listed, "UpdateTime": 1}}
    data = {"DeviceInfoCfg": msgspec.json.encode(said).decode()}
    meta = {"name": f"mindx-dl-deviceinfo-{name}", "namespace": "kube-system", "labels": {"mx-consumer-cim": "true"}}
    return {f"kube-system/{meta['name']}": {"metadata": meta, "data": data}}


def cores(name: str, count: int, *, level: str = "high", dvpp: str = "", **notes: str) -> Task:
    labels = {**JOB, "vnpu-level": level} | ({"vnpu-dvpp": dvpp} if dvpp else {})
    return limited(name, {CORE: str(count)}, labels=labels, notes=notes)


def held(text: str) -> dict[str, str]:
    return {CORE: text, "huawei.com/AscendReal": "Ascend310P-2c.1cpu-100-0_1"}


def family_of(
    *nodes: Object, reports: dict[str, Object] | None = None, on: list[Resident] | None = None
) -> MindClusterNpu:
    """NPUs of nodes that report two chips; `on`: who is on the first."""
    specs = [read_node(each) for each in nodes]
    said = Reports({k: v for spec in specs for k, v in report(spec.name).items()} | (reports or {}), cluster=False)
    here = [[*(on or ())] if row == 0 else [] for row in range(len(specs))]
    made = [npu_node(spec, said.of(spec.name), each, own_list=True) for spec, each in zip(specs, here, strict=True)]
    idle = np.array([(spec.allocatable.scalars or {}).get(CORE, 0.0) for spec in specs])
    counted = np.array([each.status is not None for each in made])
    family = MindClusterNpu([spec.name for spec in specs], made, idle, counted)
    for each in on or ():
        family.resident(0, each.task, each.notes, leaves=each.leaves)
    return family


def test_a_part_is_had_of_the_fullest_chip_that_will_do() -> None:
    family = family_of(chip_node("n0"))
    family.nodes[0].chips[1].take(family.nodes[0].each._replace(cores=2, cpus=2))
    notes: dict[str, str] = {}
    assert family.assign(0, cores("a", 4), notes, 2.0) == {"predicate-time": "2000000000", CORE: "1-vir04"}
    assert family.nodes[0].chips[1].free[:2] == (6, 5)  # it counts once the next session has read it
    assert family.release(0, cores("a", 4), notes) == ("predicate-time", CORE)
    assert family.nodes[0].chips[1].free[:2] == (10, 9)  # as in Volcano, which gives back what it never took


@pytest.mark.parametrize(
    ("count", "level", "dvpp", "given"),
    [
        (1, "low", "", "0-vir01"),
        (2, "low", "", "0-vir02_1c"),
        (4, "low", "", "0-vir04_3c"),
        (4, "high", "yes", "0-vir04_4c_dvpp"),
        (4, "high", "no", "0-vir04_3c_ndvpp"),
        (8, "low", "", "0"),
        (16, "low", "", "0,1"),
    ],
)
def test_labels_say_which_template(count: int, level: str, dvpp: str, given: str) -> None:
    family, task = family_of(chip_node("n0")), cores("a", count, level=level, dvpp=dvpp)
    assert family.fits(task, 0)
    assert family.assign(0, task, {}, 0.0)[CORE] == given


def test_where_cpus_are_short_a_pod_gets_fewer() -> None:
    family = family_of(chip_node("n0", chips=1), reports=report("n0", chips=1))
    family.nodes[0].chips[0].take(family.nodes[0].each._replace(cores=1, cpus=4))
    assert family.fits(cores("a", 4), 0)
    assert family.assign(0, cores("a", 4), {}, 0.0)[CORE] == "0-vir04_3c"


def test_a_node_in_use_takes_pods_of_the_same_template_only() -> None:
    running = Resident(cores("r", 2), held("0-vir02"), leaves=False)
    family = family_of(chip_node("n0"), on=[running])
    assert family.nodes[0].chips[0].free[:2] == (6, 5)
    assert family.fits(cores("a", 2), 0)
    other = cores("b", 4)
    assert not family.fits(other, 0)
    assert family.refusal(other, 0) == ("", True)
    left = family_of(chip_node("n0"), on=[running._replace(leaves=True)])
    assert left.fits(other, 0)
    assert left.nodes[0].chips[0].free[:2] == (6, 5)


def test_the_node_itself_is_looked_at_first() -> None:
    family, task = family_of(chip_node("n0"), node("n1")), cores("a", 17)
    for row in (0, 1):
        assert not family.fits(task, row)
        assert family.refusal(task, row) == ("preCheckNodePredicate failure", True)


def test_without_room_a_node_passes_and_the_assignment_fails() -> None:
    """As in Volcano: what does not fit is noticed when a chip is to be chosen."""
    family = family_of(chip_node("n0"))
    for chip in family.nodes[0].chips.values():
        chip.take(family.nodes[0].each)
    task = cores("a", 8)
    assert family.fits(task, 0)
    with pytest.raises(DeviceError, match="free whole chip <0> not enough for req <1>"):
        family.assign(0, task, {}, 0.0)


@pytest.mark.parametrize("once", [False, True])
def test_what_is_assigned_counts_immediately_with_a_switch_only(once: bool) -> None:
    family, (one, two) = family_of(chip_node("n0", 1)), (cores(name, 8) for name in "ab")
    family = MindClusterNpu(["n0"], family.nodes, np.array([16000.0]), np.array([True]), once=once)
    notes = dict(one.annotations)
    family.assign(0, one, notes, 0.0)
    assert family.nodes[0].chips[0].free.cores == (0 if once else 8)
    if not once:
        assert family.assign(0, two, {}, 0.0)[CORE] == notes[CORE]
        return
    with pytest.raises(DeviceError, match="free whole chip <0> not enough for req <1>"):
        family.assign(0, two, {}, 0.0)
    family.release(0, one, notes)
    assert family.assign(0, two, {}, 0.0)[CORE] == notes[CORE]


def test_unhealthy_and_recovering_chips_are_not_there() -> None:
    said = report("n0", more={"huawei.com/Ascend310P-Unhealthy": "Ascend310P-0"})
    assert list(family_of(chip_node("n0"), reports=said).nodes[0].chips) == [1]


def test_what_clusterd_gathers_is_read_in_place_of_the_nodes_own_reports() -> None:
    name = "cluster-info-device-0"
    said = {"mindx-dl-deviceinfo-n0": {"DeviceList": {"a": "b"}, "UpdateTime": 5}}
    meta = {"name": name, "namespace": "mindx-dl", "labels": {"mx-consumer-volcano": "true"}}
    config_map = {"metadata": meta, "data": {name: msgspec.json.encode(said).decode()}}
    reports = Reports({**report("n0"), f"mindx-dl/{name}": config_map}, cluster=True)
    assert reports.of("n0") == ({"a": "b"}, 5, "", 0)


def test_nodes_are_scored_together() -> None:
    idle = np.array([32.0, 16.0, 64.0])
    assert shares(idle * 2, 8.0).tolist() == [0.0, 8.0, 0.0]
    assert shares(idle * 2 + [0.0, 1.0, 0.0], 8.0).tolist() == [16.0, 8.0, 0.0]  # the fullest gives fewer CPUs
    assert shares(idle * 2 + 1.0, 8.0).tolist() == [8.0, 8.0, 8.0]
    assert shares(np.zeros(0), 8.0).tolist() == []


def test_parts_come_and_go_with_pods() -> None:
    family, task = family_of(chip_node("n0")), cores("a", 2)
    for count, taken, free in ((family.add, {"vir02"}, 6), (family.remove, set[str](), 8)):
        count(0, task, held("1-vir02"))
        assert family.nodes[0].chips[1].free.cores == free
        assert set(family.nodes[0].in_use) == taken
    twin = family.trial(0)
    twin.add(0, task, held("0,1"))
    assert [chip.free.cores for chip in twin.nodes[0].chips.values()] == [0, 0]
    assert [chip.free.cores for chip in family.nodes[0].chips.values()] == [8, 8]


@pytest.mark.parametrize(("once", "free"), [(False, 3), (True, 0)])
def test_pod_that_gets_fewer_cpus_counts_with_these_under_the_fix(once: bool, free: int) -> None:
    family = family_of(chip_node("n0", 1), reports=report("n0", 1))
    family = MindClusterNpu(["n0"], family.nodes, np.array([8000.0]), np.array([True]), once=once)
    family.nodes[0].chips[0].take(family.nodes[0].each._replace(cores=4, cpus=4))
    before, task = family.nodes[0].chips[0].free, cores("a", 4)
    notes: dict[str, str] = {}
    assert family.assign(0, task, notes, 0.0)[CORE] == "0-vir04_3c"
    assert family.nodes[0].chips[0].free.cpus == free
    if once:
        family.release(0, task, notes)
        assert family.nodes[0].chips[0].free[:2] == before[:2]


STEPS = st.lists(st.tuples(st.sampled_from([1, 2, 4, 8, 16]), st.booleans(), st.booleans()), max_size=9)


@given(STEPS)
def test_chips_with_the_fix_give_no_more_than_they_have(steps: list[tuple[int, bool, bool]]) -> None:
    family = family_of(chip_node("n0"))
    family = MindClusterNpu(["n0"], family.nodes, np.array([16000.0]), np.array([True]), once=True)
    held: list[tuple[Task, dict[str, str]]] = []
    for number, (count, low, ends) in enumerate(steps):
        task, notes = cores(f"p{number}", count, level="low" if low else "high"), dict[str, str]()
        try:
            family.assign(0, task, notes, 0.0)
        except DeviceError:
            assert notes == {}
        else:
            held.append((task, notes))
        if ends and held:
            family.release(0, *held.pop(0))
        chips = family.nodes[0].chips.values()
        assert all(chip.free.cores >= 0 and chip.free.cpus >= 0 for chip in chips)
        assert sum(chip.used.cores for chip in chips) == sum(cores_of(task) for task, _ in held)
    for task, notes in held:
        family.release(0, task, notes)
    assert [chip.used[:2] for chip in family.nodes[0].chips.values()] == [(0, 0), (0, 0)]
    assert family.nodes[0].in_use == {}


def cores_of(task: Task) -> int:
    return int(task.template.spec["containers"][0]["resources"]["requests"][CORE])
