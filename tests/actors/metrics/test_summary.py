"""The summary counts what the api has, whether it follows the changes or starts from a list."""

from __future__ import annotations

import pytest

from actors.api.store import Store
from actors.metrics.summary import Summary
from core.messages.commands import BindPod, Delete, UpdateStatus
from core.messages.replies import Accepted
from storage import codec
from tests.kit.jobs import vcjob
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.kit.queues import queue

JOB = {"volcano.sh/job-name": "j"}


def stocked(log_capacity: int) -> Store:
    store = Store(log_capacity=log_capacity)
    objects = [queue("default"), node("n"), vcjob("j"), pod("a", annotations=JOB), pod("b", annotations=JOB), pod("c")]
    for each in objects:
        assert isinstance(store.create(codec.pack(each), 0.0), Accepted)
    return store


def uid(store: Store, name: str) -> str:
    reply = store.get("Pod", "default", name)
    assert isinstance(reply, Accepted)
    text: str = codec.unpack(reply.blob)["metadata"]["uid"]
    return text


@pytest.mark.parametrize("log_capacity", [1000, 2])
def test_pods_and_jobs_are_counted(log_capacity: int) -> None:
    store = stocked(log_capacity)
    store.publish()
    followed = Summary(store)
    first = followed.report(1, 2.0)
    assert first["pods"] == {"bound": 0, "running": 0, "succeeded": 0, "failed": 0, "pending": 3}
    assert first["jobs"] == {"default/j": {"phase": "", "bound": 0, "pending": 2}}
    for name, phase in (("a", "Running"), ("c", "Failed")):
        assert isinstance(store.apply(BindPod("default", name, uid(store, name), "n"), 1.0), Accepted)
        status = UpdateStatus("Pod", "default", name, codec.pack({"phase": phase}))
        assert isinstance(store.apply(status, 1.0), Accepted)
    assert isinstance(store.apply(Delete("Pod", "default", "b", grace_period_s=0), 1.0), Accepted)
    store.publish()
    expected = {
        "cycles": 2,
        "pods": {"bound": 2, "running": 1, "succeeded": 0, "failed": 1, "pending": 0},
        "jobs": {"default/j": {"phase": "", "bound": 1, "pending": 0}},
        "seconds": 4.0,
        "pods_per_s": 0.5,
    }
    assert followed.report(2, 4.0) == Summary(store).report(2, 4.0) == expected


def test_the_rate_counts_binds_of_pods_that_have_gone_too() -> None:
    store = stocked(1000)
    assert isinstance(store.apply(BindPod("default", "a", uid(store, "a"), "n"), 1.0), Accepted)
    assert isinstance(store.apply(Delete("Pod", "default", "a", grace_period_s=0), 1.0), Accepted)
    store.publish()
    report = Summary(store).report(1, 2.0)
    assert (report["pods"]["bound"], report["pods_per_s"]) == (0, 0.5)
