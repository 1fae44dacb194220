"""Chips that MindCluster cuts: parts, what is free of a chip, and what pods are found to have on a node."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.devices.ascend import CORE, Reports, Resident, npu_node
from pumice.core.devices.ascend.cuts import (
    ASCEND_310P,
    HIGH,
    LOW,
    NOTHING,
    NULL,
    OFF,
    ON,
    TEMPLATES,
    Part,
    VirtualChip,
    lesser,
    name_of,
    template_for,
)
from pumice.core.objects.node import read_node
from tests.core.devices.cards import chip_node, limited

PARTS = TEMPLATES[ASCEND_310P]
FREE = Part(8, 7, ON)
SIZES = st.sampled_from(sorted(PARTS))


@pytest.mark.parametrize("name", sorted(PARTS))
def test_template_of_a_part_has_its_amounts(name: str) -> None:
    found = name_of(PARTS[name])
    assert found is not None
    assert PARTS[found] == PARTS[name]
    assert name_of(PARTS[name]._replace(cores=3)) is None


@pytest.mark.parametrize("cores", range(9))
@pytest.mark.parametrize("level", [LOW, HIGH])
@pytest.mark.parametrize("dvpp", [NULL, ON, OFF])
def test_part_for_a_pod_is_a_template_of_as_many_cores(cores: int, level: str, dvpp: str) -> None:
    part = template_for(cores, level, dvpp)
    if cores not in (1, 2, 4):
        assert part == NOTHING
        return
    assert part in PARTS.values()
    assert part.cores == cores
    assert part.dvpp == (dvpp if cores == 4 else NULL)  # only half a chip has image processing of its own
    assert part.cpus <= template_for(cores, HIGH, dvpp).cpus


@pytest.mark.parametrize("name", sorted(PARTS))
def test_lesser_part_is_a_template_with_fewer_cpus(name: str) -> None:
    part, less = PARTS[name], lesser(PARTS[name])
    assert (less is not None) is (name in ("vir02", "vir04"))
    if less is not None:
        assert less in PARTS.values()
        assert (less.cores, less.cpus) == (part.cores, part.cpus - 1)


@given(st.lists(SIZES, max_size=6).flatmap(lambda names: st.tuples(st.just(names), st.permutations(names))))
def test_chip_that_gets_all_parts_back_is_as_free_as_before(orders: tuple[list[str], list[str]]) -> None:
    chip, (taken, given_back) = VirtualChip(0, ASCEND_310P, FREE), orders
    for name in taken:
        chip.take(PARTS[name])
        assert chip.used.plus(chip.free)[:2] == FREE[:2]
    twin = chip.copy()
    for name in given_back:
        chip.give(PARTS[name])
    assert (chip.free, chip.used[:2]) == (FREE, (0, 0))
    assert twin.used.cores == sum(PARTS[name].cores for name in taken)  # the copy is independent


@given(st.lists(SIZES, max_size=9))
def test_chip_that_has_a_part_can_give_it(names: list[str]) -> None:
    chip = VirtualChip(0, ASCEND_310P, FREE, cut=True)
    for number, name in enumerate(names):
        part = PARTS[name]
        if chip.has(part):
            assert chip.against(part) == []
            chip.take(part)
            chip.use_dvpp(part.dvpp)
            chip.parts.append(f"Ascend310P-{part.cores}c-100-0_{number}")
        else:
            assert chip.against(part)
        assert chip.free.covers(NOTHING)
        assert chip.used.covers(NOTHING)


@pytest.mark.parametrize(
    ("groups", "largest"), [([], 4), ([0], 4), ([0, 1], 4), ([0, 1, 2], 2), ([0, 0, 1, 2], 2), ([0, 1, 2, 3], 1)]
)
def test_chip_with_groups_in_use_has_small_parts_only(groups: list[int], largest: int) -> None:
    parts = [f"Ascend310P-1c-105-0_{number}" for number in groups]
    chip = VirtualChip(0, ASCEND_310P, FREE, cut=True, parts=["0", *parts])
    assert [cores for cores in (1, 2, 4) if chip.has(Part(cores, 1, NULL))][-1] == largest
    chip.cut = False
    assert chip.has(Part(4, 1, NULL))


@pytest.mark.parametrize(
    ("first", "second", "fits"),
    [
        (ON, ON, False),
        (ON, NULL, False),
        (ON, OFF, True),
        (OFF, ON, True),
        (OFF, NULL, True),
        (NULL, ON, False),
        (NULL, NULL, True),
        (NULL, OFF, True),
    ],
)
def test_image_processing_that_is_had_or_shared_cannot_be_had_again(first: str, second: str, fits: bool) -> None:
    chip = VirtualChip(0, ASCEND_310P, FREE)
    chip.use_dvpp(first)
    assert chip.has(Part(1, 1, second)) is fits
    if first == ON:
        chip.leave_dvpp(ON)
        assert chip.has(Part(1, 1, ON))


# --- Pods that a session finds


def reported(listed: dict[str, str]) -> Reports:
    data = {"DeviceInfoCfg": msgspec.json.encode({"DeviceInfo": {"DeviceList": listed, "UpdateTime": 1}}).decode()}
    meta = {"name": "mindx-dl-deviceinfo-n0", "namespace": "kube-system", "labels": {"mx-consumer-cim": "true"}}
    return Reports({f"kube-system/{meta['name']}": {"metadata": meta, "data": data}}, cluster=False)


HELD = st.tuples(st.integers(0, 3), st.sampled_from(["", *sorted(PARTS), "unknown"]), st.booleans())


@given(st.integers(1, 3), st.lists(HELD, max_size=5))
def test_chips_of_a_node_have_free_what_its_pods_leave(chips: int, held: list[tuple[int, str, bool]]) -> None:
    there: list[Resident] = []
    for index, (number, template, made) in enumerate(held):
        notes = {CORE: f"{number}-{template}" if template else str(number)}
        notes |= {"huawei.com/AscendReal": f"Ascend310P-2c-{index}-0_{index}"} if made else {}
        there.append(Resident(limited(f"p{index}", {CORE: "1"}), notes, leaves=False))
    said = reported({"huawei.com/Ascend310P": "Ascend310P-0", "huawei.com/Ascend310P-Unhealthy": "Ascend310P-3"})
    found = npu_node(read_node(chip_node("n0", chips)), said.of("n0"), there, own_list=False)
    whole = found.chips[0].free.plus(found.chips[0].used)
    assert set(found.chips) == {0, *(number for number, _, _ in held if number != 3)}  # those that are unhealthy: none
    for number, chip in found.chips.items():
        here = [(template, made) for at, template, made in held if at == number]
        used = [PARTS.get(template, NOTHING) if template else whole for template, _ in here]
        assert chip.used[:2] == (sum(part.cores for part in used), sum(part.cpus for part in used))
        assert chip.free.plus(chip.used)[:2] == whole[:2] == (8, 7)
        assert chip.cut is any(template for template, _ in here)
        assert chip.unstable is not all(made for _, made in here)
        assert len(chip.pods) == len(here)


@pytest.mark.parametrize("said", ["x", "0,x", "x-vir01", "0-1-vir01", "", "9" * 5000, "9" * 5000 + "-vir01"])
def test_annotation_that_names_no_chip_counts_nothing(said: str) -> None:
    pod = Resident(limited("p", {CORE: "1"}), {CORE: said}, leaves=False)
    listed = {"huawei.com/Ascend310P": "Ascend310P-0"}
    found = npu_node(read_node(chip_node("n0", 1)), reported(listed).of("n0"), [pod], own_list=False)
    assert [chip.used[:2] for chip in found.chips.values()] == [(0, 0)]


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("accelerator", "huawei"),
        ("servertype", "Ascend310P"),
        ("servertype", "Ascend310P-7"),  # the node's cores are no multiple of it
        ("servertype", "Ascend310P-16"),  # no chip has so many
        ("servertype", None),
        ("node.kubernetes.io/npu.chip.name", None),
    ],
)
def test_node_with_unreadable_labels_is_not_usable(label: str, value: str | None) -> None:
    made, said = chip_node("n0", 2), reported({"huawei.com/Ascend310P": "Ascend310P-0"}).of("n0")
    assert npu_node(read_node(made), said, [], own_list=False).usable
    labels: dict[str, str | None] = made["metadata"]["labels"]
    labels[label] = value
    if value is None:
        del labels[label]
    found = npu_node(read_node(made), said, [], own_list=False)
    assert (found.usable, found.chips, found.status) == (False, {}, "Healthy")
