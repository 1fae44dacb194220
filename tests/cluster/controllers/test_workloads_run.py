"""A whole system runs Kubernetes' own workloads, also where Volcano's controllers are left to others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pumice.actors.system.system import System
from pumice.core.objects.metadata import Object
from tests.actors.rig import QUICK, idle, started
from tests.cluster.controllers.batch.job_kit import batch_job
from tests.cluster.controllers.crons.cron_kit import KINDS, cron_job
from tests.cluster.controllers.daemons.test_daemon_sets import daemon_set
from tests.cluster.controllers.flows.test_job_flows import flow, template
from tests.cluster.controllers.replication.test_replication import controller
from tests.cluster.controllers.stateful.set_kit import stateful_set
from tests.kit.nodes import node

pytestmark = pytest.mark.anyio


def workloads() -> list[Object]:
    job = batch_job(completions=2, parallelism=2)
    job["spec"]["template"]["metadata"]["annotations"] = {"pumice.dev/duration": "1ms"}
    crons = [cron_job(dialect, name=name, schedule="@yearly") for name, dialect in KINDS.items()]
    return [job, stateful_set(2), daemon_set(), controller(1), *crons]


async def owners_of_pods(system: System) -> list[str]:
    pods = await system.listed("Pod")
    return sorted(pod["metadata"]["ownerReferences"][0]["kind"] for pod in pods)


EVERYONE = ["DaemonSet", "DaemonSet", "Job", "Job", "ReplicationController", "StatefulSet", "StatefulSet"]


async def test_they_all_run() -> None:
    async with started() as system:
        await system.submit([node("n0"), node("n1"), *workloads()])
        await idle(system)
        assert await owners_of_pods(system) == EVERYONE
        short = template("a")
        short["spec"]["tasks"][0]["template"]["metadata"] = {"annotations": {"pumice.dev/duration": "10ms"}}
        await system.submit([short, flow(("a", []))])
        await idle(system)
        assert [each["metadata"]["name"] for each in await system.listed("Job")] == ["f-a"]
        assert all(pod["spec"].get("nodeName") for pod in await system.listed("Pod"))
        [job] = await system.listed("Job.batch")
        assert [each["type"] for each in job["status"]["conditions"]] == ["SuccessCriteriaMet", "Complete"]
        [stateful] = await system.listed("StatefulSet")
        assert stateful["status"]["readyReplicas"] == 2
        [daemons] = await system.listed("DaemonSet")
        assert daemons["status"]["numberAvailable"] == 2


async def test_they_go_on_without_volcanos_controllers() -> None:
    alone = replace(QUICK, controllers=False, scheduler=False)
    async with started(settings=alone) as system:
        await system.submit([node("n0"), node("n1"), *workloads(), template("a"), flow(("a", []))])
        await idle(system)
        assert await system.listed("Job") == [], "that would be Volcano's"
        assert await owners_of_pods(system) == [kind for kind in EVERYONE if kind != "StatefulSet"] + ["StatefulSet"]
        assert await system.listed("PodGroup") == []


async def test_nodes_are_left_to_other_agents() -> None:
    async with started(settings=replace(QUICK, agents=False)) as system:
        await system.submit([node("n0"), batch_job()])
        await idle(system)
        [pod] = await system.listed("Pod")
        assert pod["spec"]["nodeName"] == "n0", "it is scheduled"
        assert pod["status"]["phase"] == "Pending", "nobody runs it"
