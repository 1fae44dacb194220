# SPDX-License-Identifier: Apache-2.0
"""Judge of progress: when all is quiet, no gang waits that fits into the room that is free.

Only certain cases are judged: the pods of a gang ask for the same, so that any order of placing them succeeds if one
does; no scheduler promises to search for the order of unequal ones. Nothing is said where pods wait in several queues,
since the share that one deserves is kept from the others (Volcano's proportion plugin), nor of a queue that has a
capability.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pumice.core.objects.metadata import Object, section
from pumice.proof.storm.invariants.pod_book import PodBook
from pumice.proof.storm.invariants.truth import StormTruth
from pumice.proof.strangers.history import ApiHistory, Broken, Found
from pumice.proof.strangers.judges.room import JudgedRoom

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
        if len(waiting) >= needed and _are_equal(waiting) and _fits(truth, waiting[: max(needed, 1)]):
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


def _are_equal(pods: Sequence[PodBook]) -> bool:
    return all(pod.requests == pods[0].requests and pod.ports == pods[0].ports for pod in pods)


def _fits(truth: StormTruth, pods: Iterable[PodBook]) -> bool:
    """Return whether each of these pods goes on the first node with room for it, beside the ones before it."""
    nodes = [JudgedRoom(truth, node) for node in truth.all_of("Node") if _is_open(node)]
    for pod in pods:
        room = next((each for each in nodes if each.has(pod)), None)
        if room is None:
            return False
        room.put(pod)
    return True


def _is_open(node: Object) -> bool:
    spec, status = section(node, "spec"), section(node, "status")
    ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in status.get("conditions") or ())
    return ready and not spec.get("unschedulable") and not spec.get("taints")
