"""Virtual NPUs by HAMi: who gets which chips, and what is written and read of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.devices import ascend
from pumice.core.devices.ascend.chips import Chip
from pumice.core.devices.ascend.hami import NONE, PARTIAL, SCARCE, ChipUsage, chip_against, choose, held, takes
from pumice.core.devices.family import DeviceError
from pumice.core.devices.vgpu.asking import CardRequest
from pumice.core.objects.node import read_node
from tests.core.devices.cards import limited
from tests.kit import node

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task

WORD = "Ascend910B3"
MODEL = ascend.ChipModel(
    WORD, f"huawei.com/{WORD}", f"huawei.com/{WORD}-memory", 65536, 65536, ascend.chip_models(None)[0].templates
)
HELD = f"hami.io/{WORD}-devices-allocated"


def npu_node(name: str, *chips: dict[str, Any], word: str = WORD) -> dict[str, Any]:
    """A node that registered chips, each with what differs from one of 64 GiB for four pods."""
    usual = {"count": 4, "devmem": 65536, "devcore": 8, "type": word, "health": True}
    said = [{"id": f"{name}-{number}", **usual, **chip} for number, chip in enumerate(chips)]
    made = node(name, annotations={f"hami.io/node-register-{word}": msgspec.json.encode(said).decode()})
    made["status"]["allocatable"][f"huawei.com/{word}"] = "99"
    return made


def wired(*networks: int) -> list[dict[str, Any]]:
    return [{"custominfo": {"NetworkID": network}} for network in networks]


def chips_on(*nodes: dict[str, Any], policy: str = "", likes_unused: bool = False) -> ascend.HamiNpu:
    specs = [read_node(each) for each in nodes]
    names = [spec.name for spec in specs]
    return ascend.HamiNpu(names, ascend.chips_of(specs, MODEL), MODEL, [MODEL], policy, likes_unused=likes_unused)


def npus(name: str, *each: tuple[int, int], notes: dict[str, str] | None = None) -> Task:
    """A pod whose containers ask for so many chips and MiB of each (0: unsaid)."""
    sizes = [{MODEL.memory: str(memory)} if memory else {} for _, memory in each]
    return limited(
        name, *({MODEL.number: str(count), **size} for (count, _), size in zip(each, sizes, strict=True)), notes=notes
    )


def test_memory_is_had_by_templates_and_said_in_four_annotations() -> None:
    family = chips_on(npu_node("n0", {}, {}))
    said = family.assign(0, npus("a", (1, 3000)), {}, 7.9)
    assert said[HELD] == said[f"hami.io/{WORD}-devices-to-allocate"] == f"n0-0,{WORD},3072,0:;"
    assert said[f"huawei.com/{WORD}"] == '[{"UUID":"n0-0","temp":"vir01"}]'
    assert (said["hami.io/vgpu-node"], said["hami.io/bind-phase"], said["predicate-time"]) == ("n0", "allocating", "7")
    assert family.memory.tolist() == [[3072, 0]]


def test_what_no_chip_has_counts_as_nothing() -> None:
    family = chips_on(npu_node("n0", {"devmem": 100}))
    assert family.assign(0, npus("a", (1, 65537)), {}, 0.0)[HELD] == f"n0-0,{WORD},0,0:;"
    assert not family.fits(npus("b", (1, 3000)), 0)


def test_several_chips_are_had_whole_only() -> None:
    family = chips_on(npu_node("n0", {}, {}, {}))
    assert family.fitting(npus("a", (2, 0))).all()
    partial = npus("b", (2, 6144))
    assert not family.fits(partial, 0)
    assert family.refusal(partial, 0) == ("no ascend device available", True)
    with pytest.raises(DeviceError, match="failed to select ascend devices for pod b: vNPU does not support partial"):
        family.assign(0, partial, {}, 0.0)


def test_chips_that_are_wired_together_come_together() -> None:
    family = chips_on(npu_node("n0", *wired(1, 2, 2, 1, 2)))
    task = npus("a", (3, 0))
    assert family.scores(task).tolist() == [10.0]
    assert [part.split(",")[0] for part in family.assign(0, task, {}, 0.0)[HELD].split(":")[:-1]] == [
        "n0-1",
        "n0-2",
        "n0-4",
    ]


def test_the_policy_counts_for_assignments_once_the_node_was_scored() -> None:
    nodes = npu_node("n0", {}, {}), npu_node("n1", {}, {})
    family = chips_on(*nodes, policy="binpack")
    task = npus("a", (1, 3072))
    for row in (0, 1):
        family.add(row, npus(f"r{row}", (1, 6144)), {HELD: f"n{row}-1,{WORD},6144,0:;"})
    assert family.assign(0, task, {}, 0.0)[HELD].startswith("n0-0")
    assert family.scores(task).tolist() == pytest.approx([9.375, 9.375])
    assert family.assign(1, task, {}, 0.0)[HELD].startswith("n1-1")


def test_the_first_chip_of_a_second_container_is_not_counted() -> None:
    family = chips_on(npu_node("n0", {}, {}))
    family.assign(0, npus("a", (1, 3072), (1, 3072)), {}, 0.0)
    assert family.sharers.tolist() == [[1, 0]]


def test_a_pod_counts_once_and_gives_back_what_its_notes_say() -> None:
    family, task = chips_on(npu_node("n0", {}, {})), npus("a", (1, 3072))
    notes = {HELD: f"n0-1,{WORD},3072,0:;", "hami.io/bind-phase": "success"}
    family.add(0, task, notes)
    family.resident(0, task, notes, leaves=True)
    family.add(0, task, notes)
    assert family.memory.tolist() == [[0, 3072]]
    assert family.release(0, task, notes) == ()  # the node has given it its chips: it keeps its annotations
    assert family.memory.tolist() == [[0, 0]]
    assert HELD in family.release(0, task, {**notes, "hami.io/bind-phase": "allocating"})


def test_a_trial_leaves_the_session_as_it_was() -> None:
    family, task = chips_on(npu_node("m"), npu_node("n0", {"count": 1})), npus("a", (1, 3072))
    family.assign(1, task, {}, 0.0)
    twin = family.trial(1)
    assert not twin.fits(npus("b", (1, 3072)), 0)
    twin.remove(0, task, {HELD: f"n0-0,{WORD},3072,0:;"})
    assert twin.fits(npus("b", (1, 3072)), 0)
    assert not family.fits(npus("b", (1, 3072)), 1)
    assert family.present.tolist() == [False, True]


@pytest.mark.parametrize("text", ["[", "{}", '[{"id":"a","count":"x"}]', '[{"id":"a","devmem":4294967296}]', "[1]"])
def test_what_nobody_can_read_is_no_chip(text: str) -> None:
    made = npu_node("n0", {})
    made["metadata"]["annotations"][f"hami.io/node-register-{WORD}"] = text
    assert not chips_on(made).present.any()


def test_the_configuration_lists_models_in_two_ways() -> None:
    listed = [{"commonWord": "A", "templates": [{"name": "b", "memory": 2}, {"name": "a", "memory": 1}]}]
    assert ascend.chip_models({"vnpus": listed}) == ascend.chip_models({"vnpus": {"configs": listed}})
    assert [each.name for each in ascend.chip_models({"vnpus": listed})[0].templates] == ["a", "b"]
    assert [model.word for model in ascend.chip_models(None)] == ["Ascend310P"]
    assert ascend.chip_models({}) == ()


@pytest.mark.parametrize("listed", [7, [7], [{"templates": 7}], [{"memoryCapacity": "much"}], [{"templates": ["x"]}]])
def test_what_cannot_be_read_is_as_if_nothing_were_said(listed: object) -> None:
    assert ascend.chip_models({"vnpus": listed}) == ascend.chip_models(None)


@pytest.mark.parametrize(
    ("likes_unused", "chip", "liked"), [(False, "n0-0", [100.0, 0.0]), (True, "n0-1", [100.0, 100.0])]
)
def test_spread_prefers_a_shared_chip_unless_the_fix_is_on(likes_unused: bool, chip: str, liked: list[float]) -> None:
    family = chips_on(npu_node("n0", {}, {}), npu_node("n1", {}), policy="spread", likes_unused=likes_unused)
    family.add(0, npus("a", (1, 3000)), {HELD: f"n0-0,{WORD},3072,0:;"})
    asked = npus("b", (1, 3000))
    assert family.scores(asked).tolist() == liked
    assert family.assign(0, asked, {}, 0.0)[HELD].startswith(f"{chip},")


def test_spread_likes_no_chip_without_memory_under_the_fix() -> None:
    family = chips_on(npu_node("n0", {"devmem": 0}), policy="spread", likes_unused=True)
    assert family.scores(npus("a", (1, 0))).tolist() == [0.0]


# --- Properties

CHIP = st.builds(
    Chip,
    st.just("u"),
    st.integers(0, 3),
    st.sampled_from([0, 3072, 20000, 65536]),
    st.sampled_from([0, 8]),
    st.integers(0, 2),
    st.just(True),
)
IN_USE = st.builds(ChipUsage, st.integers(0, 3), st.sampled_from([0, 3072, 12288]), st.sampled_from([0, 4, 8, 9]))
ASKED = st.builds(
    CardRequest, st.integers(1, 3), st.sampled_from([0, 100, 3072, 12289, 65536, 70000]), st.just(100), st.just(0)
)
POLICIES = st.sampled_from(["", "binpack", "spread"])


@given(st.lists(st.tuples(CHIP, IN_USE), max_size=5), st.lists(ASKED, min_size=1, max_size=3), POLICIES, st.booleans())
def test_chosen_chips_have_room_and_serve_one_container(
    there: list[tuple[Chip, ChipUsage]], wanted: list[CardRequest], policy: str, are_wired: bool
) -> None:
    chips = [chip._replace(uuid=f"u{at}", wired=are_wired) for at, (chip, _) in enumerate(there)]
    usage = [used for _, used in there]
    given_out = choose(wanted, MODEL, chips, usage, policy)
    if isinstance(given_out, str):
        assert given_out in (NONE, SCARCE, PARTIAL)
        return
    assert [len(each) for each in given_out] == [asked.cards for asked in wanted]
    listed = [chip for each in given_out for chip, _ in each]
    assert len(set(listed)) == len(listed)
    for devices, asked in zip(given_out, wanted, strict=True):
        assert len({device.memory for _, device in devices}) == 1
        for chip, device in devices:
            assert device.uuid == chips[chip].uuid
            assert chip_against(chips[chip], usage[chip], device.memory) == []
            assert usage[chip].memory + device.memory <= chips[chip].memory
            assert usage[chip].sharers < chips[chip].sharers
        free = [at for at, chip in enumerate(chips) if takes(chip, usage[at], devices[0][1].memory)]
        if are_wired and len(wanted) == 1:
            networks = Counter(chips[chip].network for chip in free)
            together = Counter(chips[chip].network for chip, _ in devices)
            assert max(together.values()) == min(asked.cards, max(networks.values()))


def test_chip_that_serves_a_container_serves_no_other_of_the_pod() -> None:
    chip, unused = Chip("u", 4, 65536, 8, None, False), ChipUsage(0, 0, 0)
    one = CardRequest(1, 3072, 100, 0)
    assert choose([one, one], MODEL, [chip], [unused], "") == SCARCE
    given_out = choose([one, one], MODEL, [chip, chip], [unused, unused], "")
    assert not isinstance(given_out, str)
    assert [[at for at, _ in each] for each in given_out] == [[0], [1]]


@given(st.integers(0, 80000))
def test_template_for_a_request_is_the_smallest_with_as_much(memory: int) -> None:
    found = MODEL.trimmed(memory)
    enough = [each for each in MODEL.templates if each.memory >= memory]
    if enough:
        assert found == min(enough, key=lambda each: each.memory)
    else:
        assert found == ("", 65536 if memory <= 65536 else 0)


@given(CHIP, IN_USE, st.sampled_from([0, 3072, 20000]))
def test_sentences_against_a_chip_say_whether_it_has_room(chip: Chip, usage: ChipUsage, memory: int) -> None:
    assert takes(chip, usage, memory) is (chip_against(chip, usage, memory) == [])


PODS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(1, 2), st.sampled_from([0, 3000, 6144]), st.booleans()), max_size=8
)


@given(PODS, st.tuples(st.integers(1, 2), st.sampled_from([0, 3000, 20000])), POLICIES)
def test_chips_of_all_nodes_answer_as_each_does_and_get_all_back(
    steps: list[tuple[int, int, int, bool]], asked: tuple[int, int], policy: str
) -> None:
    family = chips_on(npu_node("n0", {}, {"count": 1}), npu_node("n1", {"devmem": 6144}), node("n2"), policy=policy)
    held: list[tuple[int, Task, dict[str, str]]] = []
    for number, (row, count, memory, ends) in enumerate(steps):
        pod, notes = npus(f"p{number}", (count, memory)), dict[str, str]()
        if family.fits(pod, row):
            notes.update(family.assign(row, pod, notes, 0.0))
            held.append((row, pod, notes))
        if ends and held:
            family.release(*held.pop(0))
        assert (family.memory <= family.chips.memory).all()
        assert (family.sharers <= family.chips.count).all()
    pod = npus("p", asked)
    each = [bool(family.present[row]) and family.fits(pod, row) for row in range(3)]
    assert family.fitting(pod).tolist() == each
    assert family.scores(pod).tolist() == [family.score(pod, row) for row in range(3)]
    for row, other, notes in held:
        family.release(row, other, notes)
    assert [int(each.sum()) for each in (family.sharers, family.memory, family.cores)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("", []),
        (f"a,{WORD},5,1:;", [("a", 5, 1)]),
        (f"a,{WORD},5,1:b,{WORD},6,0:;", [("a", 5, 1), ("b", 6, 0)]),
        (f"a,{WORD},5,1:;b,{WORD},6,0:;", [("a", 5, 1), (";b", 6, 0)]),  # a name that no chip has
        (f"a,{WORD},5,1:b,{WORD}:", []),
    ],
)
def test_annotation_of_what_a_pod_has_is_read(text: str, devices: list[tuple[str, int, int]]) -> None:
    assert [(each.uuid, each.memory, each.cores) for each in held(text)] == devices
