"""Which cards a pod was given, and why the cards of nodes would not do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.core.devices.family import told_of
from pumice.core.objects.metadata import format_time
from pumice.core.plugins import given_cards
from tests.core.devices.cards import asking, chip_node, gpu_node, limited, shared, vgpu_node, virtual
from tests.core.devices.test_hami import chips_on, npu_node, npus
from tests.core.devices.test_mindcluster import cores, family_of
from tests.core.devices.test_vgpu import GEOMETRIES
from tests.core.plugins.test_deviceshare import asks
from tests.kit import gang, priority_class, queue
from tests.pumice.cli.terminal import pumice

CONFIG = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: binpack}
"""
IDS = "volcano.sh/vgpu-ids-new"


def test_every_card_is_told_of_what_speaks_against_it() -> None:
    cards = virtual(vgpu_node("n0", [(2, 16_000, "NVIDIA-A"), (1, 16_000, "NVIDIA-A"), (9, 16_000, "NVIDIA-T4")]))
    cards.add(0, asking("r", {"vgpu_number": 2}), {IDS: "n0-0,NVIDIA,14000,30:n0-1,NVIDIA,100,100:;"})
    task = asking(
        "a", {"vgpu_number": 1, "vgpu_memory": 4000, "vgpu_cores": 80}, notes={"nvidia.com/use-gputype": "IA-A"}
    )
    assert told_of(cards.against(task, 0)) == [
        "n0-0: 2,000 MiB left of 16,000, asks 4,000; 70 % of its cores left of 100, asks 80",
        "n0-1: 1 share it, as many as may; 0 % of its cores left of 100, asks 80",
        "n0-2: its type NVIDIA-T4 is refused",
    ]
    assert told_of(cards.against(asking("b", {"vgpu_number": 1, "vgpu_memory": 1}), 0))[0] == "n0-0: would do"
    assert cards.against(asking("c"), 0) == {"n0-0": [], "n0-1": [], "n0-2": []}
    mig = asking("d", {"vgpu_number": 1}, notes={"volcano.sh/vgpu-mode": "mig"})
    assert cards.against(mig, 0)["n0-2"][0] == "the node shares cards by hami-core, asks mig"


def test_of_very_many_cards_the_first_are_told() -> None:
    assert told_of({f"card {n}": [] for n in range(10)})[-1] == "and 2 more"


def test_of_several_cards_it_is_told_how_many_would_do() -> None:
    assert told_of({"u-0": [], "u-1": ["in use"]}, 2) == [
        "1 of the 2 cards asked for would do",
        "u-0: would do",
        "u-1: in use",
    ]
    assert told_of({"u-0": [], "u-1": []}, 2) == ["u-0: would do", "u-1: would do"]


def test_of_a_card_that_is_cut_the_profiles_in_use_are_named() -> None:
    cards = virtual(vgpu_node("n0", [(9, 80, "NVIDIA-A100")], "mig"), nvidia=GEOMETRIES)
    large = asking("a", {"vgpu_number": 1, "vgpu_memory": 25})
    assert cards.against(large, 0) == {"n0-0": ["its largest slice has 20 MiB, asks 25"]}
    cards.add(0, asking("r", {"vgpu_number": 1}), {IDS: "n0-0[group2-3],NVIDIA,10,0:;"})
    asked = asking("b", {"vgpu_number": 1, "vgpu_memory": 20})
    assert cards.against(asked, 0) == {"n0-0": ["no slice of 20 MiB is free among the profiles in use (1g)"]}


def test_shared_cards_and_chips_say_it_too() -> None:
    larger = gpu_node("n1", cards=3, memory=30)  # its third card is none of n0
    by_memory = shared(gpu_node("n0", cards=2, memory=20, unhealthy="1"), larger)
    assert by_memory.against(asking("a", {"gpu_memory": 11}), 0) == {
        "card 0": ["10 MiB left of 10, asks 11"],
        "card 1": ["unhealthy"],
    }
    by_number = shared(gpu_node("n0", cards=1, memory=20), by_memory=False)
    assert by_number.cards_asked(asking("a", {"gpu_number": 3})) == 3
    by_number.assign(0, asking("r", {"gpu_number": 1}), {}, 0.0)
    assert by_number.against(asking("a", {"gpu_number": 1}), 0) == {"card 0": ["in use"]}
    chips = chips_on(npu_node("n0", {"count": 1}, {"devmem": 100}))
    assert chips.cards_asked(npus("a", (1, 1), (2, 1))) == 2
    chips.assign(0, npus("r", (1, 3072)), {}, 0.0)
    assert chips.against(npus("a", (1, 6144)), 0) == {
        "n0-0": ["1 share it, as many as may"],
        "n0-1": ["100 MiB left of 100, asks 6,144"],
    }
    assert "several chips are had whole only" in chips.against(npus("a", (2, 6144)), 0)["n0-0"]
    assert chips.against(limited("a", {"cpu": "1"}), 0) == {}
    parts = family_of(chip_node("n0"))
    parts.nodes[0].chips[0].take(parts.nodes[0].each)
    assert parts.against(cores("a", 4), 0) == {
        "chip 0": ["0 AI cores left of 8, asks 4", "0 AI CPUs left of 7, asks 4"],
        "chip 1": [],
    }


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        ({"volcano.sh/gpu-index": "0,2"}, ["card 0", "card 2"]),
        ({IDS: "u-0,NVIDIA,4000,25:u-1,NVIDIA,10,0:"}, ["u-0 (4,000 MiB, 25 % of its cores)", "u-1 (10 MiB)"]),
        ({"hami.io/X-devices-allocated": "c-0,X,3072,0:;c-1,X,1,0:;"}, ["c-0 (3,072 MiB)", "c-1 (1 MiB)"]),
        ({"huawei.com/npu-core": "3-vir04"}, ["chip 3 (vir04)"]),
        ({"huawei.com/npu-core": "0,1"}, ["chip 0", "chip 1"]),
        ({}, []),
    ],
)
def test_what_a_pod_was_given_is_read_off_its_annotations(notes: dict[str, str], said: list[str]) -> None:
    assert given_cards(notes) == said


def test_explain_says_how_many_cards_a_node_has_of_those_asked_for(tmp_path: Path) -> None:
    objects = [vgpu_node("n0", [(9, 100, "NVIDIA-A")]), queue("default"), *asks(gang("g", pods=1), vgpu_number=2)]
    (tmp_path / "o.yaml").write_text(yaml.safe_dump_all(objects))
    (tmp_path / "c.conf").write_text(CONFIG)
    at = ("-f", tmp_path / "o.yaml", "--config", tmp_path / "c.conf", "--budget", 0, "-o", "json")
    told = pumice("explain", "pod", "g-0", *at).json["cards"]
    assert told == {"n0": ["1 of the 2 cards asked for would do", "n0-0: would do"]}


def test_more_cards_are_advised_where_a_node_has_as_many_as_its_status_says(tmp_path: Path) -> None:
    objects = [gpu_node("n0", 2, 100), queue("default"), *asks(gang("g", pods=1), gpu_number=3)]
    (tmp_path / "o.yaml").write_text(yaml.safe_dump_all(objects))
    (tmp_path / "c.conf").write_text(CONFIG.replace("VGPUEnable", "GPUNumberEnable"))
    told = pumice("explain", "pod", "g-0", "-f", tmp_path / "o.yaml", "--config", tmp_path / "c.conf", "-o", "json")
    assert told.json["unblock"] == ["1 of 1 fit with: 1 volcano.sh/gpu-number more on node n0"]


def test_decide_and_explain_name_cards(tmp_path: Path) -> None:
    objects: list[Any] = [queue("default"), vgpu_node("n0", [(9, 16_000, "NVIDIA-A")] * 2)]
    for second, (name, memory) in enumerate((("a", 10_000), ("b", 12_000), ("c", 9_000))):
        created = f"2026-01-01T00:00:0{second}Z"
        group, pod = gang(name, queue="default", pods=1, phase="Inqueue", created=created)
        limits = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": str(memory)}
        pod["spec"]["containers"][0]["resources"] = {"limits": limits, "requests": limits}
        objects += [group, pod]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects))
    (tmp_path / "some.conf").write_text(CONFIG)
    given = ["-f", tmp_path / "all.yaml", "--config", tmp_path / "some.conf"]
    decided = pumice("decide", *given, "-o", "json")
    assert decided.json["cards"] == {"default/a-0": ["n0-0 (10,000 MiB)"], "default/b-0": ["n0-1 (12,000 MiB)"]}
    assert "cards of default/b-0: n0-1 (12,000 MiB)" in pumice("decide", *given, "-o", "table").out
    told = pumice("explain", "pod", "c-0", *given, "-o", "json").json["cards"]
    assert told == {"n0": ["n0-0: 6,000 MiB left of 16,000, asks 9,000", "n0-1: 4,000 MiB left of 16,000, asks 9,000"]}
    assert "cards of n0: n0-0: 6,000 MiB left of 16,000" in pumice("explain", "pod", "c-0", *given, "-o", "table").out
    assert pumice("explain", "pod", "a-0", *given, "-o", "json").json["cards"] == {"n0": ["n0-0 (10,000 MiB)"]}


def test_a_card_that_is_too_full_is_what_keeps_a_preemptor_off_and_not_the_room_of_its_node(tmp_path: Path) -> None:
    """80 MiB are left of both cards together, 40 of each: nobody is evicted for 70."""
    there = vgpu_node("n0", [(9, 100, "NVIDIA-A")] * 2)
    objects = [there, queue("default"), *(priority_class(name, value) for name, value in (("low", 1), ("high", 9)))]
    for card in range(2):
        held = asks(gang(f"r{card}", pods=1, nodes=["n0"], priority=1), vgpu_number=1, vgpu_memory=60)
        held[1]["metadata"]["annotations"][IDS] = f"n0-{card},NVIDIA,60,0:"
        objects += held
    wants = gang("g", pods=1, phase="Inqueue", priority_class="high", priority=9)
    objects += asks(wants, vgpu_number=1, vgpu_memory=70)
    (tmp_path / "o.yaml").write_text(yaml.safe_dump_all(objects))
    preempts = CONFIG.replace('allocate"', 'allocate, preempt"').replace("gang\n", "priority\n")
    (tmp_path / "c.conf").write_text(preempts)
    at = ("-f", tmp_path / "o.yaml", "--config", tmp_path / "c.conf", "--budget", 0, "-o", "json")
    told = pumice("explain", "pod", "g-0", *at).json
    steps = next(each["steps"] for each in told["job"]["steps"] if each["action"] == "preempt")
    assert "default/g-0: a plugin refused its placement (hami-vgpuDeviceSharing error) on n0" in steps
    assert told["message"].startswith("its placement on n0 was refused: ")


@pytest.mark.parametrize(
    ("switch", "lock", "asked", "there", "words"),
    [
        ("VGPUEnable", "hamivgpu", "vgpu_number", vgpu_node("n0", [(2, 100, "NVIDIA-A100")]), "hamivgpu lockname"),
        ("GPUSharingEnable", "gpu", "gpu_memory", gpu_node("n0", 1, 100), "lockname gpushare"),
    ],
)
def test_a_lock_of_the_node_is_the_reason_that_is_told(
    switch: str, lock: str, asked: str, there: dict[str, Any], words: str, tmp_path: Path
) -> None:
    there["metadata"].setdefault("annotations", {})[lock] = format_time(time.time())
    objects = [there, queue("default"), *asks(gang("g", pods=1), **{asked: 1})]
    (tmp_path / "o.yaml").write_text(yaml.safe_dump_all(objects))
    switches = f"deviceshare.{switch}: true, deviceshare.NodeLockEnable: true"
    (tmp_path / "c.conf").write_text(CONFIG.replace("deviceshare.VGPUEnable: true", switches))
    at = ("-f", tmp_path / "o.yaml", "--config", tmp_path / "c.conf", "--budget", 0, "-o", "json")
    told = pumice("explain", "pod", "g-0", *at).json
    assert told["reason"] == "PlacementRefused"
    assert told["message"].startswith("the placement of default/g-0 on n0 was refused: ")
    assert words in told["message"]
    assert "node n0 has been locked within 5 minutes" in told["message"]
