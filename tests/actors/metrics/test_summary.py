"""The summary counts what the api has, whether it follows the changes or starts from a list."""

from __future__ import annotations

import pytest

from pumice.actors.metrics.summary import JobSummary, PodCounts, RunSummary, Summary
from pumice.cluster.api.store import Store
from pumice.core.messages.commands import BindPod, Delete, UpdateStatus
from pumice.core.messages.replies import Accepted
from pumice.storage import codec
from tests.actors.bench import Bench, running
from tests.kit.jobs import vcjob
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.kit.queues import queue

pytestmark = pytest.mark.anyio

JOB = {"volcano.sh/job-name": "j"}


def stocked(log_capacity: int) -> Bench:
    bench = Bench()
    bench.store = store = Store(log_capacity=log_capacity)
    objects = [queue("default"), node("n"), vcjob("j"), pod("a", annotations=JOB), pod("b", annotations=JOB), pod("c")]
    for each in objects:
        assert isinstance(store.create(codec.pack(each), 0.0), Accepted)
    return bench


def uid(store: Store, name: str) -> str:
    reply = store.get("Pod", "default", name)
    assert isinstance(reply, Accepted)
    text: str = codec.unpack(reply.blob)["metadata"]["uid"]
    return text


@pytest.mark.parametrize("log_capacity", [1000, 2])
async def test_pods_and_jobs_are_counted(log_capacity: int) -> None:
    async with running(stocked(log_capacity)) as bench:
        followed, store = Summary(bench.api, bench.context, bench.store.listings), bench.store
        first = await followed.report(1, 2.0)
        assert first.pods == PodCounts(pending=3)
        assert first.jobs == {"default/j": JobSummary("", pending=2)}
        for name, phase in (("a", "Running"), ("c", "Failed")):
            assert isinstance(await bench.api.ask(BindPod("default", name, uid(store, name), "n")), Accepted)
            status = UpdateStatus("Pod", "default", name, codec.pack({"phase": phase}))
            assert isinstance(await bench.api.ask(status), Accepted)
        assert isinstance(await bench.api.ask(Delete("Pod", "default", "b", grace_period_s=0)), Accepted)
        pods, jobs = PodCounts(bound=2, running=1, failed=1), {"default/j": JobSummary("", bound=1)}
        expected = RunSummary(cycles=2, pods=pods, jobs=jobs, seconds=4.0, pods_per_s=0.5)
        anew = Summary(bench.api, bench.context, bench.store.listings)
        assert await followed.report(2, 4.0) == await anew.report(2, 4.0) == expected


async def test_the_rate_counts_binds_of_pods_that_have_gone_too() -> None:
    async with running(stocked(1000)) as bench:
        assert isinstance(await bench.api.ask(BindPod("default", "a", uid(bench.store, "a"), "n")), Accepted)
        assert isinstance(await bench.api.ask(Delete("Pod", "default", "a", grace_period_s=0)), Accepted)
        report = await Summary(bench.api, bench.context, bench.store.listings).report(1, 2.0)
    assert (report.pods.bound, report.pods_per_s) == (0, 0.5)
