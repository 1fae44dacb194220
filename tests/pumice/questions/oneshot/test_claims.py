"""Volumes and devices over several one-shot cycles: a pod that waits for its volumes is bound in the next."""

from __future__ import annotations

from typing import Any

from pumice.core.kube.storage import is_fully_bound
from pumice.core.objects.metadata import Object
from pumice.questions.oneshot.cycles import Cycle, Setup, run_cycles
from pumice.questions.oneshot.prepare import GivenObjects, admitted
from tests.core.plugins.world import configuration
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.queues import queue
from tests.kit.storage import (
    claim,
    device_claim,
    device_class,
    device_slice,
    storage_class,
    using,
    volume,
    with_devices,
)

CONFIG = configuration(["gang", "predicates"], actions=["allocate"], fix=["volumes-are-no-resource"])


def cycles(objects: list[Object], number: int = 2) -> list[Cycle]:
    lookup = GivenObjects(objects)
    taken = [admitted(each, lookup)[0] for each in objects]
    return list(run_cycles(Setup(taken, CONFIG, 1_700_000_000.0), number))


def dressed(*claims: str, devices: tuple[str, ...] = (), name: str = "g") -> list[Object]:
    group, pod = gang(name, pods=1, phase="Inqueue")
    return [group, with_devices(using(pod, *claims), *devices)]


def free(name: str, **more: Any) -> Object:
    return {**volume(name, **more), "status": {"phase": "Available"}}


def test_a_pod_that_waits_for_volumes_is_no_bind_and_runs_in_the_next_cycle() -> None:
    local = storage_class("local", provisioner="kubernetes.io/no-provisioner")
    world = [node("n0"), node("n1"), queue("default"), local, storage_class("cloud"), free("pv", node="n1")]
    first, second = cycles([*world, claim("a"), claim("b", cls="cloud"), *dressed("a", "b")])
    assert first.outcome["binds"] == {}
    assert first.outcome["taskStatus"] == {"default/g": {"Binding": 1}}
    assert second.outcome["taskStatus"] == {"default/g": {"Running": 1}}
    claims = [obj for obj in second.objects if obj["kind"] == "PersistentVolumeClaim"]
    assert [is_fully_bound(each) for each in claims] == [True, True]
    (pod,) = [obj for obj in second.objects if obj["kind"] == "Pod"]
    assert pod["spec"]["nodeName"] == "n1"


def test_devices_are_no_reason_to_wait_and_are_in_use_in_the_next_cycle() -> None:
    world = [node("n0"), node("n1"), queue("default"), device_class(), device_slice("n1")]
    pods = [*dressed(devices=("a",)), *dressed(devices=("b",), name="h")]
    first, second = cycles([*world, device_claim("a"), device_claim("b"), *pods])
    assert first.outcome["binds"] == {"default/g-0": "n1"}
    assert second.outcome["binds"] == {}
    (given,) = [obj for obj in second.objects if obj["kind"] == "ResourceClaim" and obj.get("status")]
    assert given["status"]["reservedFor"][0]["name"] == "g-0"
    assert given["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu0"
