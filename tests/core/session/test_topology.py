"""Where a session finds that jobs and their groups are: what is carried over, and what their tasks' nodes say."""

from __future__ import annotations

import pytest

from core.session.carry import Carry
from tests.core.plugins.world import configuration, job_of, open_world
from tests.kit import gang, node, queue
from tests.kit.hyper_nodes import hyper_node
from tests.kit.objects import Object

JOB = "default/j"
CONFIG = configuration(["gang", "network-topology-aware"])


def world() -> list[Object]:
    """Two racks under one spine, and a job of one group in the first rack."""
    group, *pods = gang("j", queue="q", pods=2, nodes=["n0", "n0"], phase="Running")
    group["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 2}
    racks = [hyper_node("r0", 1, nodes=["n0"]), hyper_node("r1", 1, nodes=["n1"])]
    return [node("n0"), node("n1"), queue("q"), *racks, hyper_node("s0", 2, children=["r0", "r1"]), group, *pods]


@pytest.mark.parametrize(
    ("carried", "job", "group"),
    [
        ({}, "r0", "r0"),
        ({"": "s0", JOB: "r0"}, "s0", "r0"),  # all is known: nothing is found out, and nothing narrowed
        ({"": "s0"}, "r0", "r0"),  # a group that is found anew tells where the job is
        ({"": "s0", JOB: "gone"}, "r0", "r0"),
        ({"": "gone", JOB: "s0"}, "s0", "s0"),
    ],
)
def test_what_is_carried_over_counts_until_a_group_has_to_be_found(
    carried: dict[str, str], job: str, group: str
) -> None:
    session = open_world(CONFIG, *world(), carry=Carry(hyper_nodes={JOB: carried}))
    found = job_of(session, "j")
    assert session.topology.occupied[found.row] == job
    assert {each.allocated_hyper_node for each in session.sub_jobs(found).values()} == {group}
