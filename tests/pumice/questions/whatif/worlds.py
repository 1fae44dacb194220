"""Random worlds by number: clusters in which all that a simulation models may happen.

Each draws some of: preemption and reclaiming, policies and retries of Jobs, HyperNodes, claims on devices and volumes,
quotas, gates, CronJobs, budgets, workloads of Kubernetes' own, and objects that come later.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from pumice.cluster.api.origin import as_new
from pumice.cluster.kernel.fork import Fork
from pumice.core.messages.events import ConfigLoaded
from pumice.core.objects.metadata import Object
from tests.kit.budgets import budget
from tests.kit.hyper_nodes import hyper_node
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.kit.queues import queue
from tests.kit.storage import (
    claim,
    claim_template,
    csi_node,
    device_class,
    device_slice,
    local_class,
    storage_class,
    using,
    volume,
    with_ephemeral,
    with_templates,
)
from tests.pumice.questions.whatif.clusters import ACTIONS_OF, BEGAN, parsed, priority_class

LASTS_MS = (700, 9000)
COMES_S = (1, 30)
POLICIES: tuple[list[Object], ...] = (
    [],
    [{"event": "PodEvicted", "action": "RestartJob"}],
    [{"event": "PodEvicted", "action": "RestartTask"}],
    [{"event": "PodFailed", "action": "RestartJob"}, {"event": "TaskCompleted", "action": "CompleteJob"}],
    [{"event": "PodFailed", "action": "AbortJob"}],
    [{"event": "*", "action": "RestartPod", "timeout": "1s"}],
)
PLUGINS: tuple[Object, ...] = ({"env": []}, {"svc": [], "env": []})
CONFIG = """\
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang, enablePreemptable: false}}, {{name: conformance}}]
- plugins:
  - {{name: overcommit}}
  - {{name: drf}}
  - name: predicates
    arguments: {{predicate.DynamicResourceAllocationEnable: true}}
  - {{name: {shares}}}
  - {{name: nodeorder}}
  - {{name: network-topology-aware}}
  - {{name: resourcequota}}
configurations: [{{name: pumice, arguments: {{schedulePeriod: {period}}}}}]
"""


def world(number: int) -> Fork:
    """Return the world of that number."""
    text = CONFIG.format(
        actions=ACTIONS_OF[number % 3],
        shares=("proportion", "capacity")[number // 3 % 2],
        period=("130ms", "330ms", "700ms")[number // 2 % 3],
    )
    drawn = _Drawn(number)
    objects = drawn.objects()
    fork = Fork(tuple(objects), BEGAN, parsed(text), ConfigLoaded("", text, "test"))
    return replace(fork, later=tuple(drawn.later))


class _Drawn:
    """The objects of a world; `later`: those that come so many seconds after its beginning."""

    def __init__(self, number: int) -> None:
        self._chance = random.Random(f"world {number}")
        self._nodes = [f"n{place}" for place in range(self._chance.randint(2, 6))]
        self._has = {
            each: self._chance.random() < 0.4
            for each in ("devices", "volumes", "hyper", "quota", "gates", "crons", "budget", "others")
        }
        # A full quota refuses what controllers make at the moment at which room is given back: which of the two comes
        # first is a race of actors. With Jobs alone that need all their pods the scheduler asks the quota before.
        self._has["others"] = self._has["others"] and not self._has["quota"]
        self.later: list[tuple[float, Object]] = []

    def objects(self) -> list[Object]:
        """Return those that are there from the beginning."""
        return [*self._cluster(), *self._rooms(), *self._jobs(), *self._rest()]

    def _cluster(self) -> list[Object]:
        chance = self._chance
        found: list[Object] = [node(name, cpu=str(chance.choice((4, 6, 8)))) for name in self._nodes]
        found += [priority_class("low", 1), priority_class("high", 1000)]
        found += [queue("q1", weight=chance.randint(1, 3)), queue("q2", weight=1)]
        if chance.random() < 0.3:
            found.append(queue("q3", weight=1, parent="q1"))
        return found

    def _rooms(self) -> list[Object]:
        """Return what nodes offer beside cpu and memory."""
        found: list[Object] = []
        if self._has["devices"]:
            found += [device_class(), claim_template("one")]
            found += [device_slice(name, 2) for name in self._nodes[::2]]
        if self._has["volumes"]:
            found += [
                local_class(),
                storage_class("made"),
                *(csi_node(name, "csi.example.com") for name in self._nodes),
            ]
            found += [volume(f"v{place}", node=name) for place, name in enumerate(self._nodes)]
            found += [claim(f"c{place}") for place in range(2)]
        if self._has["hyper"]:
            half = len(self._nodes) // 2
            found += [hyper_node("a", 1, nodes=self._nodes[:half]), hyper_node("b", 1, nodes=self._nodes[half:])]
            found.append(hyper_node("top", 2, children=["a", "b"]))
        if self._has["quota"]:
            spec = {"hard": {"requests.cpu": str(self._chance.randint(6, 14)), "pods": "30"}}
            meta = {"name": "limit", "namespace": "default"}
            found.append({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": spec})
        if self._has["budget"]:
            found.append(budget("keep", {"matchLabels": {"app": "g1"}}, minAvailable=1))
        return found

    def _jobs(self) -> list[Object]:
        found: list[Object] = []
        for place in range(self._chance.randint(3, 8)):
            job = self._job(place) if self._has["quota"] or self._chance.random() < 0.6 else self._gang(place)
            if self._chance.random() < 0.4:
                at = self._chance.randint(*COMES_S) + 0.011 + place / 1000
                self.later += [(at, as_new(obj)) for obj in job]
            else:
                found += job
        return found

    def _lasts(self, place: int) -> str:
        # not a multiple of a period: which of an end and a cycle comes first at one moment is left to rounding
        return f"{self._chance.randint(*LASTS_MS) * 10 // 10 + 7 + place}ms"

    def _job(self, place: int) -> list[Object]:
        chance, tasks = self._chance, list[Object]()
        for number in range(chance.randint(1, 2)):
            size = chance.randint(1, 4)
            task = job_task(f"t{number}", replicas=size, cpu=str(chance.randint(1, 3)), duration=self._lasts(place))
            marks = task["template"]["metadata"]["annotations"]
            marks["pumice.dev/termination"] = f"{311 + 17 * place + number}ms"
            if chance.random() < 0.2:
                marks["pumice.dev/exit-code"] = "1"
            task["template"]["spec"] = self._wishes({"spec": task["template"]["spec"]})["spec"]
            tasks.append(task)
        if len(tasks) > 1 and chance.random() < 0.3:
            tasks[1]["dependsOn"] = {"name": ["t0"]}
        made = vcjob(f"j{place}", *tasks, queue=chance.choice(("q1", "q2")), policies=chance.choice(POLICIES))
        if not self._has["quota"]:
            made["spec"]["minAvailable"] = chance.randint(1, made["spec"]["minAvailable"])
        if (name := chance.choice(("", "low", "high"))) != "":
            made["spec"]["priorityClassName"] = name
        if chance.random() < 0.3:
            made["spec"]["plugins"] = chance.choice(PLUGINS)
        if chance.random() < 0.3:
            made["spec"]["ttlSecondsAfterFinished"] = chance.randint(0, 9)
        if self._has["hyper"] and chance.random() < 0.5:
            made["spec"]["networkTopology"] = {"mode": chance.choice(("hard", "soft")), "highestTierAllowed": 1}
        return [made]

    def _gang(self, place: int) -> list[Object]:
        chance, size = self._chance, self._chance.randint(1, 4)
        shape: dict[str, Any] = {"queue": chance.choice(("q1", "q2")), "cpu": str(chance.randint(1, 3))}
        shape |= {"priority_class": chance.choice(("low", "high", None)), "duration": self._lasts(place)}
        name = f"g{place}"
        made = gang(name, pods=size, min_member=chance.randint(1, size), labels={"app": name}, **shape)
        marks = {"volcano.sh/preemptable": "true", "pumice.dev/termination": f"{211 + 19 * place}ms"}
        for number, each in enumerate(made):
            if each["kind"] == "Pod":
                each["metadata"].setdefault("annotations", {}).update(marks)
                made[number] = self._wishes(each)
        return made

    def _wishes(self, each: Object) -> Object:
        """Return the pod with what it may want of the rooms."""
        chance = self._chance
        if self._has["devices"] and chance.random() < 0.3:
            each = with_templates(each, "one")
        if self._has["volumes"] and chance.random() < 0.3:
            wish = chance.choice(("claimed", "local", "made"))
            each = using(each, f"c{chance.randint(0, 1)}") if wish == "claimed" else with_ephemeral(each, "e", cls=wish)
        if self._has["gates"] and chance.random() < 0.1:
            each["spec"] = {**each["spec"], "schedulingGates": [{"name": "example.com/later"}]}
        return each

    def _rest(self) -> list[Object]:
        chance, found = self._chance, list[Object]()
        if self._has["crons"]:
            found.append(_cron_job(self._lasts(50)))
        if self._has["others"]:
            found += [_deployment(chance.randint(1, 3)), _batch_job(chance.randint(1, 3), self._lasts(60))]
        for place in range(0 if self._has["quota"] else chance.randint(0, 2)):
            alone = pod(f"alone{place}", cpu=chance.choice(("1", None)), duration=self._lasts(70 + place))
            found.append(alone)
        return found


def _cron_job(lasts: str) -> Object:
    spec = vcjob("x", job_task(replicas=2, duration=lasts))["spec"]
    meta = {"name": "each-minute", "namespace": "default"}
    template = {"schedule": "* * * * *", "concurrencyPolicy": "Allow", "jobTemplate": {"spec": spec}}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": meta, "spec": template}


def _template(app: str, lasts: str = "") -> Object:
    marks = {"pumice.dev/duration": lasts} if lasts else {}
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": "1"}}}
    spec = {"schedulerName": "volcano", "containers": [container], "terminationGracePeriodSeconds": 1}
    return {"metadata": {"labels": {"app": app}, "annotations": marks}, "spec": spec}


def _deployment(replicas: int) -> Object:
    meta, spec = {"name": "web", "namespace": "default"}, {"replicas": replicas, "template": _template("web")}
    spec["selector"] = {"matchLabels": {"app": "web"}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def _batch_job(parallelism: int, lasts: str) -> Object:
    template = _template("batch", lasts)
    template["spec"]["restartPolicy"] = "Never"
    spec = {"parallelism": parallelism, "completions": parallelism + 1, "template": template}
    meta = {"name": "batch", "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
