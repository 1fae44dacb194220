"""Shares of what the configuration hands out, and nothing else."""

from __future__ import annotations

import pytest

from pumice.proof.storm.driver import objects_of
from pumice.proof.storm.script.profiles import profile
from pumice.proof.storm.script.sharing import kind_of, with_shares
from pumice.proof.storm.script.workload import Size, inputs


@pytest.mark.parametrize(
    ("name", "kind", "offered", "asked"),
    [
        ("cards", "share", '"vgpu"', "volcano.sh/vgpu-memory"),
        ("cards-memory", "gpu-memory", '"gpu"', "volcano.sh/gpu-memory"),
        ("cards-number", "gpu-number", '"gpu"', "volcano.sh/gpu-number"),
        ("cards-mig", "slices", '"mode": "mig"', "volcano.sh/vgpu-memory"),
        ("cards-npu", "npu", "NPU-n", "huawei.com/Ascend310P-memory"),
        ("cards-chips", "npu-cores", "Ascend310P-0", "huawei.com/npu-core"),
        ("cards-locks", "share", '"vgpu"', "volcano.sh/vgpu-memory"),
    ],
)
def test_jobs_ask_for_what_the_configuration_hands_out(name: str, kind: str, offered: str, asked: str) -> None:
    chosen = profile(name)
    assert kind_of(chosen.config) == kind
    events = with_shares(3, inputs(3, Size(6, 60), {}), chosen.shares, chosen.config)
    objects = [obj for event in events for obj in objects_of(event)]
    nodes = [obj for obj in objects if obj["kind"] == "Node"]
    assert any(offered in said for obj in nodes for said in obj["metadata"].get("annotations", {}).values())
    limits = [obj["spec"]["containers"][0]["resources"].get("limits", {}) for obj in objects if obj["kind"] == "Pod"]
    assert any(asked in each for each in limits)
    maps = [obj["metadata"]["name"] for obj in objects if obj["kind"] == "ConfigMap"]
    assert bool(maps) == (kind in ("slices", "npu-cores"))


def test_without_a_configuration_cards_and_cells_are_shared() -> None:
    assert kind_of("") == kind_of(profile("evictions").config) == "share"
