"""Pods that ask for no topology are put where domains are full already, by the tiers' weights."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from pumice.core.plugins.network_topology_aware import go_power, read_weights
from pumice.core.session.search.node_search import ErrorCache
from tests.core.plugins.network_topology_aware.test_topology_occupancy import rack
from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import node, pod, pod_group, queue


def scores(arguments: dict[str, object], *, full: bool = False) -> list[float]:
    """Of a pod of 2 cpu on n0 and n1 of rack r0, of which 6 of 16 cpu are taken, n2 and n3 of r1, which is empty.

    `full`: the pod takes all that is left of the cluster.
    """
    plugin = {"name": "network-topology-aware", "arguments": arguments}
    session = open_world(
        configuration([plugin, "gang"], ["predicates"]),
        [node(f"n{i}", cpu="8", memory="32Gi") for i in range(4)],
        [rack("r0", "n0", "n1"), rack("r1", "n2", "n3")],
        queue("q"),
        pod_group("g", queue="q", phase="Running"),
        pod("r", group="g", node="n0", phase="Running", cpu="6", memory="24Gi"),
        *[pod(f"o{i}", group="g", node=f"n{i}", phase="Running", cpu="8", memory="32Gi") for i in (1, 2, 3) if full],
        pod("w", group="g", cpu="2", memory="8Gi"),
    )
    search = session.search_for(task_of(session, "w"))
    search.refresh(ErrorCache(enabled=False))
    found: list[float] = search.scoring.totals(np.arange(4)).tolist()
    return found


def test_a_fuller_rack_is_better_and_its_nodes_are_equal() -> None:
    first, second, third, fourth = scores({"weight": 10})
    assert first == second > third == fourth > 0


@pytest.mark.parametrize("weight", [1, 7])
def test_scores_rise_with_the_weight(weight: int) -> None:
    assert scores({"weight": weight}) == pytest.approx([weight * each for each in scores({"weight": 1})])


@pytest.mark.parametrize("weight", [1, 10])
def test_a_node_of_what_will_be_full_is_worth_the_whole_weight(weight: int) -> None:
    assert scores({"weight": weight}, full=True)[0] == pytest.approx(100.0 * weight)


def test_the_resources_that_are_listed_count_by_their_weights_and_spaces_are_none() -> None:
    listed = {"hypernode.binpack.resources": "nvidia.com/gpu, ,vendor/fpga ", "hypernode.binpack.cpu": 2}
    said = read_weights({**listed, "hypernode.binpack.resources.vendor/fpga": 5})
    assert said.resources == {"cpu": 2, "memory": 1, "nvidia.com/gpu": 1, "vendor/fpga": 5}


@pytest.mark.parametrize(
    ("fading", "exponent", "power"),
    [
        (0.8, 4, 0x3FDA36E2EB1C4330), (0.9, 5, 0x3FE2E54B48D3AE6A), (0.8, -6, 0x400E847FFFFFFFFB),
        (0.8, 0, 0x3FF0000000000000), (0.0, 2, 0), (0.0, -1, 0x7FF0000000000000), (1e200, 3, 0x7FF0000000000000),
    ],
)  # fmt: skip
def test_tiers_weigh_to_the_last_bit_what_go_makes_of_them(fading: float, exponent: int, power: int) -> None:
    assert go_power(fading, exponent) == struct.unpack("d", struct.pack("Q", power))[0]
