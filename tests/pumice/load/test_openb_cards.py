"""The openb trace on deviceshare's cards: objects as they are read."""

from __future__ import annotations

from pathlib import Path

from pumice.load.openb import OpenbRow
from pumice.load.openb_cards import card_node, card_pod


def test_a_node_registers_its_cards_and_a_pod_asks_for_shares() -> None:
    columns = {"cpu_milli": "64000", "memory_mib": "1024", "gpu": "2", "model": "T4"}
    node = card_node(OpenbRow(columns, Path("n"), 2), "n0")
    assert node["metadata"]["annotations"]["volcano.sh/node-vgpu-register"].count("NVIDIA-T4") == 2
    assert node["status"]["allocatable"]["volcano.sh/vgpu-memory"] == "2000"
    asks = {"cpu_milli": "10", "memory_mib": "1", "num_gpu": "1", "gpu_milli": "460", "gpu_spec": "T4|P100"}
    pod = card_pod(OpenbRow(asks, Path("p"), 2), "p0", 60)
    assert pod["metadata"]["annotations"] == {"nvidia.com/use-gputype": "T4,P100"}
    assert pod["metadata"]["creationTimestamp"] == "2020-01-01T00:01:00Z"
    limits = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "460"}
    assert pod["spec"]["containers"][0]["resources"]["limits"] == limits
    plain = card_pod(OpenbRow({**asks, "num_gpu": "0", "gpu_spec": ""}, Path("p"), 2), "p0", 0)
    assert (plain["metadata"]["annotations"], plain["spec"]["containers"][0]["resources"]["limits"]) == ({}, {})
