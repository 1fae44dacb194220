"""overcommit: room for admission, and what is charged against it."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.objects.metadata import Object
from pumice.core.session.session import Session
from tests.core.plugins.world import configuration, job_of, open_world
from tests.kit import gang, node, pod, pod_group, queue


def world(*parts: Any, factor: Any = None, fix: tuple[str, ...] = ()) -> Session:
    arguments = {} if factor is None else {"overcommit-factor": factor}
    config = configuration([{"name": "overcommit", "arguments": arguments}], fix=fix)
    return open_world(config, node("n", cpu="10", memory="100Gi"), queue("q"), *parts)


def waits(name: str, cpu: str, phase: str = "Pending", **more: Any) -> Object:
    return pod_group(name, queue="q", min_resources={"cpu": cpu}, phase=phase, **more)


def vote(session: Session, name: str = "j") -> bool:
    return session.points.job_enqueueable(job_of(session, name))


@pytest.mark.parametrize(("factor", "most"), [(None, 12), (1.0, 10), (2, 20), (0.5, 12), ("3", 12), (True, 12)])
def test_room_is_a_multiple_of_the_cluster(factor: Any, most: int) -> None:
    assert vote(world(waits("j", str(most)), factor=factor))
    assert not vote(world(waits("j", f"{most}001m"), factor=factor))


def test_what_runs_is_taken_off() -> None:
    busy = gang("r", queue="q", pods=4, nodes=["n"] * 4, phase="Running")
    assert vote(world(busy, waits("j", "8")))
    assert not vote(world(busy, waits("j", "8001m")))


def test_only_dimensions_that_are_asked_for_count() -> None:
    full = gang("r", queue="q", pods=1, nodes=["n"], phase="Running", cpu="12")
    assert vote(world(full, pod_group("j", queue="q", min_resources={"memory": "1Gi"})))


@pytest.mark.parametrize("amounts", [["4"], ["3", "1"], ["1", "2", "1"]])
def test_admission_charges_less_what_gated_pods_ask_for(amounts: list[str]) -> None:
    gated = [pod(f"j-{number}", group="j", cpu=cpu) for number, cpu in enumerate(amounts)]
    for each in gated:
        each["spec"]["schedulingGates"] = [{"name": "someone.else"}]
    session = world(waits("j", "10"), gated, waits("k", "6"), waits("l", "1"))
    session.points.job_enqueued(job_of(session, "j"))
    assert vote(session, "k")
    session.points.job_enqueued(job_of(session, "k"))
    assert not vote(session, "l")


def test_a_vote_alone_charges_nothing() -> None:
    session = world(waits("j", "12"), waits("k", "12"))
    assert vote(session, "j")
    assert vote(session, "k")


@pytest.mark.parametrize(("fix", "may"), [((), False), (("overcommit-counts-once",), True)])
def test_what_an_admitted_job_uses_counts_twice_unless_mended(fix: tuple[str, ...], may: bool) -> None:
    placed = [waits("in", "6", phase="Inqueue"), *gang("in", queue="q", pods=6, nodes=["n"] * 6)[1:]]
    assert vote(world(placed, waits("j", "6"), fix=fix)) is may


def test_a_running_job_counts_with_what_it_lacks() -> None:
    def lacking(members: int) -> list[Object]:
        pods = gang("r", queue="q", pods=2, nodes=["n"] * 2)[1:]
        return [waits("r", "6", phase="Running", min_member=members), *pods]

    assert not vote(world(lacking(2), waits("j", "7")))  # 12 - 2 used - 4 to come
    assert vote(world(lacking(2), waits("j", "6")))
    assert vote(world(lacking(3), waits("j", "10")))  # below its minimum it has no claim
