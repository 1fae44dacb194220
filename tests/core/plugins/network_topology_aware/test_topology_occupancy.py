"""What domains have and use while a session goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.plugins.network_topology_aware import DomainOccupancy
from pumice.core.session.session import Session
from tests.core.plugins.world import configuration, job_of, open_world
from tests.core.session.test_statement import Step, do, steps
from tests.kit import gang, node, pod, queue


def rack(name: str, *members: str) -> dict[str, Any]:
    listed = [{"type": "Node", "selector": {"exactMatch": {"name": member}}} for member in members]
    return {"kind": "HyperNode", "metadata": {"name": name}, "spec": {"tier": 1, "members": listed}}


def world(fix: tuple[str, ...]) -> Session:
    return open_world(
        configuration(["priority", "gang"], ["predicates"], fix=("unevict-restores-bound", *fix)),
        [node(f"n{i}", cpu="6", gpus=2) for i in range(3)],
        [rack("r0", "n0", "n1"), rack("r1", "n2")],
        queue("q"),
        gang("w", queue="q", pods=4, phase="Inqueue", gpus=1, memory="1500Mi"),
        gang("free", queue="q", pods=1, cpu=None, memory=None, phase="Inqueue"),
        gang("r", queue="q", pods=3, nodes=["n0", "n1", "n1"], phase="Running", min_member=1),
        gang("bound", queue="q", pods=1, phase="Inqueue")[:1],
        pod("bound-0", group="bound", node="n2", phase="Pending"),
    )


@given(steps, st.booleans())
def test_idle_stays_as_it_was_unless_mended(plan: list[Step], mended: bool) -> None:
    session = world(("topology-idle-follows",) if mended else ())
    occupancy = DomainOccupancy(session)
    session.points.handle(occupancy.on_allocate, occupancy.on_deallocate)
    before = {name: getattr(occupancy, name).copy() for name in ("idle", "future")}
    statement = session.statement()
    do(session, statement, plan)
    for name, kept in before.items():
        of_nodes = getattr(session.nodes, name)
        now = np.stack([of_nodes[:, d.rows].sum(axis=1) for d in session.topology.tree.domains.values()], axis=1)
        assert (getattr(occupancy, name) == (now if mended else kept)).all(), name
    statement.discard()
    for name, kept in before.items():
        assert (getattr(occupancy, name) == kept).all(), name


@pytest.mark.parametrize("alone", [False, True])
def test_of_racks_that_are_alike_the_one_where_the_group_is_already_is_better(alone: bool) -> None:
    """Each by itself there is nothing to be better than."""
    session = open_world(
        configuration(["gang", "network-topology-aware"]),
        [node(f"n{i}") for i in range(2)],
        [rack("r0", "n0"), rack("r1", "n1")],
        queue("q"),
        gang("j", queue="q", pods=2, nodes=["n1"], phase="Running"),
        gang("other", queue="q", pods=1, nodes=["n0"], phase="Running"),
    )
    (group,) = session.sub_jobs(job_of(session, "j")).values()
    scores = session.points.hyper_node_order(group, ["r0", "r1"], alone=alone)
    assert (scores["r1"] > scores["r0"]) is not alone
    assert (scores["r1"] == scores["r0"]) is alone
