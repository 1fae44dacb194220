"""Quotas of devices: counting claims, sharing them, and what a job's minimum needs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from pumice.core.kube.devices import COUNT
from pumice.core.objects.metadata import Object
from pumice.core.plugins.capacity import Capacity
from pumice.core.plugins.capacity.claims import parse_devices
from pumice.core.session.session import Session
from tests.core.plugins.world import configuration, job_of, open_world, task_of
from tests.kit import gang, node, pod_group, queue

GPU, NIC = "gpu.example.com", "nic.example.com"
ROOM = node("n", cpu="32", memory="64Gi")


def claim(name: str, device: str = GPU, count: int = 1, **more: Any) -> Object:
    exactly = {"deviceClassName": device, "count": count, **more}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }


def claiming(objects: list[Object], *claims: str) -> list[Object]:
    """The pods of a gang, each with these claims."""
    wanted = [{"name": f"c{i}", "resourceClaimName": name} for i, name in enumerate(claims)]
    return [o if o["kind"] != "Pod" else {**o, "spec": {**o["spec"], "resourceClaims": wanted}} for o in objects]


def world(
    quota: dict[str, str], *parts: Any, arguments: dict[str, Any] | None = None, fix: list[str] | None = None
) -> Session:
    config = configuration([{"name": "capacity", "arguments": arguments or {}}])
    config = structs.replace(config, pumice=structs.replace(config.pumice, fix=tuple(fix or ())))
    return open_world(config, ROOM, queue("q", capability={"cpu": "32", "memory": "64Gi", **quota}), *parts)


def allocatable(session: Session, name: str) -> bool:
    return session.points.allocatable(session.queues["q"], task_of(session, name))


def test_names_of_quotas() -> None:
    found = parse_devices(
        {"cpu": "1", f"deviceclass/{GPU}": "2", f"memory.deviceclass/{GPU}": "1500m", "deviceclass/": "3"}
    )
    assert found == {(GPU, COUNT): 2, (GPU, "memory"): 1500}


@pytest.mark.parametrize(
    ("wanted", "may"),
    [
        (claim("c"), True),
        (claim("c", count=2), False),
        (claim("c", NIC, 100), True),  # a class without a quota
        (claim("c", count=9, allocationMode="All"), True),  # not counted
    ],
)
def test_a_task_must_fit_its_claims(wanted: Object, may: bool) -> None:
    session = world({f"deviceclass/{GPU}": "1"}, wanted, claiming(gang("j", queue="q", pods=1), "c"))
    assert allocatable(session, "j-0") is may


def test_claims_of_placed_tasks_count_until_they_go() -> None:
    session = world(
        {f"deviceclass/{GPU}": "1"},
        claim("a"),
        claim("b"),
        claiming(gang("first", queue="q", pods=1), "a"),
        claiming(gang("second", queue="q", pods=1), "b"),
    )
    statement = session.statement()
    assert allocatable(session, "second-0")
    statement.allocate(task_of(session, "first-0"), 0)
    assert not allocatable(session, "second-0")
    statement.discard()
    assert allocatable(session, "second-0")


def test_a_claim_that_pods_share_counts_once() -> None:
    session = world(
        {f"deviceclass/{GPU}": "1"},
        claim("shared"),
        claiming(gang("j", queue="q", pods=3, nodes=["n"], phase="Running", min_member=1), "shared"),
    )
    ledger = session.plugins["capacity"]
    assert isinstance(ledger, Capacity)
    quota = ledger.ledger.of("q").claims
    assert quota is not None
    assert quota.allocated[GPU, COUNT] == 1
    statement = session.statement()
    assert allocatable(session, "j-1")
    statement.allocate(task_of(session, "j-1"), 0)
    assert quota.allocated[GPU, COUNT] == 1
    statement.discard()
    assert quota.held["default/shared"] == 1


def test_a_jobs_minimum_is_held_against_the_quota() -> None:
    session = world(
        {f"deviceclass/{GPU}": "2"},
        *(claim(f"c{i}") for i in range(4)),
        *(claiming(gang(f"j{i}", queue="q", pods=1), f"c{i}") for i in range(4)),
    )
    votes = [session.points.job_enqueueable(job_of(session, f"j{i}")) for i in range(4)]
    assert votes == [True, True, False, False]


def test_a_job_that_needs_nobody_needs_no_devices() -> None:
    pods = claiming(gang("j", queue="q", pods=2, min_member=0), "c")
    session = world({f"deviceclass/{GPU}": "1"}, claim("c", count=9), pods)
    assert session.points.job_enqueueable(job_of(session, "j"))


def test_roles_multiply_their_first_task() -> None:
    group = pod_group("j", queue="q", min_member=3, min_task_member={"worker": 3})
    pods = claiming(gang("j", queue="q", pods=4), "c")[1:]
    session = world({f"deviceclass/{GPU}": "2"}, claim("c"), group, pods)
    assert not session.points.job_enqueueable(job_of(session, "j"))


def test_switched_off() -> None:
    session = world(
        {f"deviceclass/{GPU}": "1"},
        claim("c", count=9),
        claiming(gang("j", queue="q", pods=1), "c"),
        arguments={"capacity.DynamicResourceAllocationEnable": False},
    )
    assert allocatable(session, "j-0")


@pytest.mark.parametrize(("enabled", "may"), [(False, True), (True, False)])
def test_capacities_count_when_they_are_switched_on(enabled: bool, may: bool) -> None:
    wanted = claim("c", capacity={"requests": {"memory": "2Gi"}})
    session = world(
        {f"memory.deviceclass/{GPU}": "1Gi"},
        wanted,
        claiming(gang("j", queue="q", pods=1), "c"),
        arguments={"capacity.DRAConsumableCapacityEnable": enabled},
    )
    assert allocatable(session, "j-0") is may


def generated_world(*, told: bool, former: bool = False) -> Session:
    """A quota of one device, and a pod whose generated claim asks for two; `told`: the pod's status names it."""
    pods = gang("j", queue="q", pods=1)
    pods[1]["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    generated = claim("j-0-gpu-abc", count=2)
    generated["metadata"] |= {
        "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"},
        "ownerReferences": [{"kind": "Pod", "uid": pods[1]["metadata"]["uid"]}],
    }
    if told:
        pods[1]["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "j-0-gpu-abc"}]
    fix = ["claims-found-by-owner"] if former else []
    return world({f"deviceclass/{GPU}": "1"}, generated, pods, fix=fix)


@pytest.mark.parametrize(("told", "former", "may"), [(True, False, False), (False, False, True), (False, True, False)])
def test_generated_claim_counts_once_the_status_names_it(told: bool, former: bool, may: bool) -> None:
    assert allocatable(generated_world(told=told, former=former), "j-0") is may


def test_pod_counts_nothing_while_one_of_its_claims_is_missing() -> None:
    pods = claiming(gang("j", queue="q", pods=1), "here", "nowhere")
    session = world({f"deviceclass/{GPU}": "1"}, claim("here", count=9), pods)
    assert allocatable(session, "j-0")


def test_capacity_is_asked_for_by_each_device_of_a_request() -> None:
    wanted = claim("c", count=3, capacity={"requests": {"memory": "1Gi"}})
    arguments = {"capacity.DRAConsumableCapacityEnable": True}
    pods = claiming(gang("j", queue="q", pods=1), "c")
    for limit, may in (("2Gi", False), ("3Gi", True)):
        assert allocatable(world({f"memory.deviceclass/{GPU}": limit}, wanted, pods, arguments=arguments), "j-0") is may


@pytest.mark.parametrize(("fix", "may"), [([], False), (["zero-capacities-are-free"], True)])
@pytest.mark.parametrize("limits", [{}, {f"deviceclass/{GPU}": "0"}])
def test_capacity_that_a_quota_does_not_name_is_refused_even_at_zero(
    fix: list[str], may: bool, limits: dict[str, str]
) -> None:
    wanted = claim("c", capacity={"requests": {"memory": "1Gi", "bandwidth": "0"}})
    limits = {f"memory.deviceclass/{GPU}": "1Gi", **limits}
    arguments = {"capacity.DRAConsumableCapacityEnable": True}
    pods = claiming(gang("j", queue="q", pods=1), "c")
    assert allocatable(world(limits, wanted, pods, arguments=arguments, fix=fix), "j-0") is may
