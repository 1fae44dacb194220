# SPDX-License-Identifier: Apache-2.0
"""Judge of progress: when all is quiet, no gang waits that fits into the room that is free.

Only certain cases are judged: the pods of a gang are put on the first node with room, which is a placement if it
succeeds. Nothing is said where pods wait in several queues, since the share that one deserves is kept from the others
(Volcano's proportion plugin), nor of a queue that has a capability.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pumice.core.objects.metadata import Object, section
from pumice.proof.storm.invariants.pod_book import Amounts, PodBook, amounts, share_port
from pumice.proof.storm.invariants.truth import StormTruth
from pumice.proof.strangers.history import ApiHistory, Broken, Found

LIMITED: Final = ("nodeSelector", "affinity", "topologySpreadConstraints", "schedulingGates", "resourceClaims")
"""Of a pod's spec: what may keep it from a node that has room."""


def judge_progress(history: ApiHistory) -> Found:
    """Yield gangs, and pods without one, that wait at the end though they fit."""
    if not history.quiet:
        return
    truth = StormTruth()
    for change in history.changes:
        truth.apply(change.mutation)
    for job, needed, waiting in _waiting(truth, history.scheduler):
        if len(waiting) >= needed and _fits(truth, waiting[: max(needed, 1)]):
            names = ", ".join(pod.key.partition("/")[2] for pod in waiting[: max(needed, 1)])
            yield Broken("starts", f"{job} waits for ever, and fits: {names}", truth.revision)


def _waiting(truth: StormTruth, scheduler: str) -> Iterator[tuple[str, int, list[PodBook]]]:
    """Yield what waits: its name, the number of pods that it needs together, and the pods that wait."""
    jobs, queues = dict[str, list[PodBook]](), set[str]()
    for pod in sorted(truth.pods.values(), key=lambda each: each.key):
        obj = truth.object_of(pod)
        spec = section(obj, "spec")
        mine = (spec.get("schedulerName") or "default-scheduler") == scheduler
        if not mine or pod.node or pod.leaves:
            continue
        queues.add(truth.queue_of(pod.job))
        if not any(spec.get(name) for name in LIMITED):
            alone = pod.job.endswith("/")
            jobs.setdefault(f"pod {pod.key}" if alone else f"gang {pod.job}", []).append(pod)
    for name, waiting in jobs.items() if len(queues) == 1 else ():
        job = name.removeprefix("gang ")
        if name.startswith("pod "):
            yield name, 1, waiting
        elif (needed := _still_needed(truth, job)) is not None:
            yield name, needed, waiting


def _still_needed(truth: StormTruth, job: str) -> int | None:
    """Return how many more pods a gang needs to start, 1 for one that has started; None for one not to be judged."""
    history = truth.groups.get(job)
    group: tuple[int, str] | None = history.last if history is not None else None
    if group is None:
        return None
    least, queue = group
    if truth.last_queue(queue) != {}:  # it does not exist, or has a capability
        return None
    placed = sum(1 for pod in truth.members(job) if pod.node and pod.phase != "Failed")
    return max(least - placed, 1)


def _fits(truth: StormTruth, pods: Iterable[PodBook]) -> bool:
    """Return whether each of these pods goes on the first node with room for it, beside the ones before it."""
    nodes = [node for node in truth.all_of("Node") if _is_open(node)]
    free = {node["metadata"]["name"]: _free(truth, node) for node in nodes}
    ports = {name: [port for pod in _on(truth, name) for port in pod.ports] for name in free}
    for pod in pods:
        name = next((name for name, room in free.items() if _goes(pod, room, ports[name])), None)
        if name is None:
            return False
        ports[name] += pod.ports
        for resource, amount in pod.requests.items():
            free[name][resource] -= amount
    return True


def _goes(pod: PodBook, room: Amounts, ports: list[tuple[str, str, int]]) -> bool:
    fits = all(room.get(resource, 0) >= amount for resource, amount in pod.requests.items() if amount)
    return fits and not share_port(pod.ports, tuple(ports))


def _is_open(node: Object) -> bool:
    spec, status = section(node, "spec"), section(node, "status")
    ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in status.get("conditions") or ())
    return ready and not spec.get("unschedulable") and not spec.get("taints")


def _free(truth: StormTruth, node: Object) -> Amounts:
    room = dict(amounts(section(section(node, "status"), "allocatable")))
    for pod in _on(truth, node["metadata"]["name"]):
        for resource, amount in pod.requests.items():
            room[resource] = room.get(resource, 0) - amount
    return room


def _on(truth: StormTruth, node: str) -> list[PodBook]:
    return [pod for pod in truth.pods.values() if pod.on_node and pod.node == node]
