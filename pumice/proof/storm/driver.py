# SPDX-License-Identifier: Apache-2.0
"""The driver of a storm: it carries out a script at its times: submits objects, changes nodes, deletes pods, turns the
clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
import trio

from pumice.core.messages.commands import ApiRequest, Create, Delete, Patch, RequestEviction, UpdateStatus
from pumice.core.messages.replies import Accepted
from pumice.core.objects.metadata import Object
from pumice.proof.storm.script.claims import claimed, classes, offers, own_claims
from pumice.proof.storm.script.events import Event
from pumice.proof.storm.script.shares import asking, geometries, labels, limits, notes, policy, quantities, reports
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actors.runtime.clock import Alarm
    from pumice.actors.system.system import System
    from pumice.proof.storm.invariants.monitor import Monitor
    from pumice.proof.storm.script.events import Script

# --- The clock

START: Final = 1_700_000_000.0


@dataclass
class JumpingClock:
    """trio's time since the first look, and all jumps so far (seconds, either way), after START."""

    offset_s: float = START
    _began: float = 0.0
    _elapsed: Callable[[], float] | None = None

    def now(self) -> float:
        """Return seconds since the epoch."""
        if self._elapsed is None:
            self._elapsed = trio.lowlevel.current_clock().current_time
            self._began = self._elapsed()
        return self._elapsed() - self._began + self.offset_s

    def jump(self, seconds: float) -> None:
        """Jump so much later, or earlier, from now on."""
        self.offset_s += seconds


# --- Objects

NAMESPACE: Final = "default"
GPU: Final = "nvidia.com/gpu"
JOB: Final = "job"
ASKED: Final = {"cpu": "1", "memory": "1Gi"}
"""Request of a job's pod that states none."""


def objects_of(event: Event) -> list[Object]:
    """Return the objects that an event submits: a node, a queue, a priority class, a budget, or a job with its pods."""
    details = event.details
    match event.what:
        case "node":
            return [node(event.target, details), *offers(event.target, details), *reports(event.target, details)]
        case "claims":
            return list(classes(NAMESPACE))
        case "geometries":
            return [geometries()]
        case "queue":
            return [queue(event.target, details)]
        case "priority":
            return [priority(event.target, int(event.amount))]
        case "vcjob":
            return [*own_claims(NAMESPACE, details), vcjob(event.target, details)]
        case "budget":
            return [budget(event.target, int(event.amount))]
        case "pods":
            loose = pods(event.target, details, range(int(details["pods"])), grouped=False)
            return [*own_claims(NAMESPACE, details), *loose]
        case "job":
            members = pods(event.target, details, range(int(details["pods"])))
            return [*own_claims(NAMESPACE, details), pod_group(event.target, details), *members]
        case _:
            return []


def node(name: str, details: Object) -> Object:
    """Return a node of cpu, memory, pods, gpus."""
    there = {"cpu": str(details["cpu"]), "memory": str(details["memory"]), "pods": str(details.get("pods", 110))}
    there |= quantities(details)
    if details.get("gpus"):
        there[GPU] = str(details["gpus"])
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name} | labels(details),
            **({"annotations": said} if (said := notes(name, details)) else {}),
        },
        "spec": {},
        "status": {
            "allocatable": there,
            "capacity": there,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def queue(name: str, details: Object) -> Object:
    """Return a queue of weight, capability."""
    spec: Object = {"weight": details.get("weight", 1), "reclaimable": True}
    if details.get("capability"):
        spec["capability"] = details["capability"]
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def priority(name: str, value: int) -> Object:
    """Return a priority class."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def budget(job: str, least: int) -> Object:
    """Return a budget: the number of a job's pods that must stay healthy."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{job}-budget", "namespace": NAMESPACE},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {JOB: job}}},
    }


def pod_group(name: str, details: Object) -> Object:
    """Return a PodGroup of min, queue, priority."""
    spec: Object = {"minMember": int(details.get("min") or details["pods"]), "queue": details.get("queue", "default")}
    if details.get("priority"):
        spec["priorityClassName"] = details["priority"]
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def pods(job: str, details: Object, numbers: range, *, grouped: bool = True) -> list[Object]:
    """Return pods job-0 and on of a job, which share all but their names; without a group each gets its own from the
    controller.

    cpu, memory (neither: best effort), gpus, port, seconds (0: it never ends), priority, scheduler.
    """
    marks = {JOB: job} | asking(details)
    notes = {"pumice.dev/duration": f"{details['seconds']}s" if details.get("seconds") else "0"} | policy(details)
    if grouped:
        notes |= {"scheduling.k8s.io/group-name": job, "volcano.sh/task-spec": "worker"}
    spec = {"schedulerName": details.get("scheduler", "volcano"), **_pod_spec(ASKED | details if grouped else details)}
    named = {"namespace": NAMESPACE, "labels": marks, "annotations": notes}
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{job}-{number}", **named}, "spec": spec}
        for number in numbers
    ]


def _pod_spec(details: Object) -> Object:
    requests: dict[str, str] = {name: str(details[name]) for name in ("cpu", "memory") if name in details}
    resources: Object = {"requests": requests}
    if details.get("gpus"):
        requests[GPU] = str(details["gpus"])
        resources["limits"] = {GPU: str(details["gpus"])}
    if shares := limits(details):
        resources["limits"] = resources.get("limits", {}) | shares
        requests |= shares
    if details.get("whole"):
        resources["limits"] = resources.get("limits", {}) | requests
    container: Object = {"name": "c", "image": "work", "resources": resources}
    if details.get("port"):
        container["ports"] = [{"containerPort": int(details["port"]), "hostPort": int(details["port"])}]
    spec: Object = {"containers": [container], "terminationGracePeriodSeconds": int(details.get("grace", 1))}
    if details.get("priority"):
        spec["priorityClassName"] = details["priority"]
    spec |= claimed(details)
    if details.get("claim"):
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": details["claim"]}}]
    return spec


def vcjob(name: str, details: Object) -> Object:
    """Return a Volcano Job of one task; its controller makes the PodGroup and the pods."""
    notes = {"pumice.dev/duration": f"{details['seconds']}s" if details.get("seconds") else "0"} | policy(details)
    metadata = {"labels": {JOB: name} | asking(details), "annotations": notes}
    template = {"metadata": metadata, "spec": {**_pod_spec(ASKED | details), "restartPolicy": "OnFailure"}}
    replicas = int(details["pods"])
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "minAvailable": int(details.get("min", replicas)),
            "schedulerName": "volcano",
            "queue": details.get("queue", "default"),
            "tasks": [{"name": "worker", "replicas": replicas, "template": template}],
        },
    }


USER: Final = "submit"
AGAIN_S: Final = 0.05
PATIENCE_S: Final = 600.0
"""For an answer: a slow journal has all requests behind it wait."""
TRIES: Final = 20
DRAIN_AGAIN_S: Final = 1.0
NEW: Final = frozenset(("node", "queue", "priority", "job", "vcjob", "pods"))


class PowerCutError(Exception):
    """The process ends here and now."""


class Driver:
    """Drives a storm. It outlives the lives of a process: past events are not repeated."""

    def __init__(self, script: Script, clock: JumpingClock, alarm: Alarm, monitor: Monitor) -> None:
        self._script = script
        self._clock = clock
        self._alarm = alarm
        self._monitor = monitor
        self._left = sorted((event for event in script.events if not event.on), key=lambda event: event.at)
        self._left.reverse()
        self._known = {event.target: event for event in script.events if event.what in NEW}

    async def drive(self, system: System) -> None:
        """Drive the storm until everything has happened and the faults must stop. Raises PowerCutError."""
        while self._left:
            await self._alarm.sleep_until(self._began + self._left[-1].at)
            together = self._together()
            await self._happen(system, together)
            del self._left[-len(together) :]  # not before it has happened: the power may fail in between
        await self._alarm.sleep_until(self._began + self._script.faults_end_s)

    @property
    def _began(self) -> float:
        return self._monitor.began

    def _together(self) -> list[Event]:
        """Return the next events: all new objects of one moment are submitted together."""
        first = self._left[-1]
        if first.what not in NEW:
            return [first]
        return list(takewhile(lambda event: event.what in NEW and event.at == first.at, reversed(self._left)))

    async def _happen(self, system: System, events: Sequence[Event]) -> None:
        match events[0].what:
            case "clock-jump":
                self._clock.jump(events[0].amount)
            case "power-cut":
                self._left.pop()
                raise PowerCutError
            case _:
                await self._ask(system, [request for event in events for request in self._requests(system, event)])

    def _requests(self, system: System, event: Event) -> list[ApiRequest]:
        match event.what:
            case "cordon":
                return [Patch("Node", "", event.target, _spec({"unschedulable": True}), USER)]
            case "remove-node":
                return [Delete("Node", "", event.target, user=USER)]
            case "shrink-node":
                return [self._shrunk(event)]
            case "restore-node":
                return self._restored(event.target)
            case "delete-pod" | "fail-pod" | "touch-pod":
                return self._to_pod(system, event)
            case "delete-job":
                return self._deleted_job(event.target)
            case "scale-up":
                return self._scaled(event)
            case "drain":
                return self._drained(system, event)
            case _:
                return [Create(codec.repack(obj), user=USER) for obj in objects_of(event)]

    def _shrunk(self, event: Event) -> ApiRequest:
        node = objects_of(self._known[event.target])[0] if event.target in self._known else {}
        allocatable = {**node.get("status", {}).get("allocatable", {}), "cpu": "2"}
        return UpdateStatus("Node", "", event.target, codec.pack({"allocatable": allocatable}), None, USER)

    def _restored(self, name: str) -> list[ApiRequest]:
        if name not in self._known:
            return []
        node = objects_of(self._known[name])[0]
        return [
            Create(codec.pack(node), user=USER),
            Patch("Node", "", name, _spec({"unschedulable": None}), USER),
            UpdateStatus("Node", "", name, codec.pack(node["status"]), None, USER),
        ]

    def _to_pod(self, system: System, event: Event) -> list[ApiRequest]:
        mine = sorted(name for _, name in system.store.tables.names("Pod") if name.startswith(f"{event.target}-"))
        if not mine:
            return []
        name = mine[int(event.amount) % len(mine)]
        if event.what == "fail-pod":
            return [UpdateStatus("Pod", NAMESPACE, name, codec.pack({"phase": "Failed"}), None, USER)]
        if event.what == "touch-pod":
            touched = {"metadata": {"annotations": {"touched": str(event.at)}}}
            return [Patch("Pod", NAMESPACE, name, codec.pack(touched), USER)]
        return [Delete("Pod", NAMESPACE, name, user=USER)]

    def _deleted_job(self, name: str) -> list[ApiRequest]:
        details = self._known[name].details if name in self._known else {"pods": 0}
        return [
            Delete("PodGroup", NAMESPACE, name, user=USER),
            *(Delete("Pod", NAMESPACE, f"{name}-{number}", user=USER) for number in range(int(details["pods"]))),
        ]

    def _drained(self, system: System, event: Event) -> list[ApiRequest]:
        """Cordon the node and evict its pods; those that a budget protects are tried again."""
        if system.store.tables.get(("Node", "", event.target)) is None:
            return []
        there = [pod for pod in self._monitor.truth.pods.values() if pod.on_node and pod.node == event.target]
        pods = [pod for pod in there if not pod.deleting]
        if pods and event.amount > 1:
            again = msgspec.structs.replace(event, at=event.at + DRAIN_AGAIN_S, amount=event.amount - 1)
            self._left.insert(0, again)
            self._left.sort(key=lambda each: each.at, reverse=True)
        return [
            Patch("Node", "", event.target, _spec({"unschedulable": True}), USER),
            *(RequestEviction(NAMESPACE, pod.key.partition("/")[2], pod.uid, user=USER) for pod in pods),
        ]

    def _scaled(self, event: Event) -> list[ApiRequest]:
        """Scale the group: it asks for more members, then they come."""
        if event.target not in self._known:
            return []
        details = self._known[event.target].details
        now, more = int(details["pods"]), int(event.amount)
        wanted = int(details.get("min", now)) + more
        return [
            Patch("PodGroup", NAMESPACE, event.target, _spec({"minMember": wanted}), USER),
            *(Create(codec.pack(pod), user=USER) for pod in pods(event.target, details, range(now, now + more))),
        ]

    async def _ask(self, system: System, requests: Sequence[ApiRequest]) -> None:
        """Send the requests, and retry unanswered ones a few times, as people do: such a request may be applied twice,
        or not at all.

        What is accepted must be on disk.
        """
        for _ in range(TRIES):
            replies = await system.api.ask_many(requests, within_s=PATIENCE_S)
            for reply in replies:
                if isinstance(reply, Accepted):
                    self._monitor.acknowledged(reply.revision, USER)
            requests = [request for request, reply in zip(requests, replies, strict=True) if reply is None]
            if not requests:
                return
            await anyio.sleep(AGAIN_S)


def _spec(patch: Object) -> bytes:
    return codec.pack({"spec": patch})
