# SPDX-License-Identifier: Apache-2.0
"""Bounds that no policy can pass, whatever it decides: of packing, and of the makespan. A figure beside its bound says
how much there is still to gain.

Both are relaxations: pods may be cut up, and nodes are one pool (the fractional knapsack, over every pair of resources;
for time, the work that is left at each arrival).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.config.durations import duration_s
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.resources.amounts import CPU, MEMORY
from pumice.errors import InputError
from pumice.questions.measures.amounts import Amount, allocatable_of, request_of
from pumice.runtime.arrivals import ARRIVAL


class AskedPods(NamedTuple):
    """Pods that ask alike: `pods` of them, `request` of each in cores, bytes and pieces, when they come, and how long
    each runs.
    """

    pods: int
    request: Amount
    arrival_s: float
    lasts_s: float


def asked_pods(objects: Sequence[Object]) -> Iterator[AskedPods]:
    """Yield the pods of Jobs and plain pods. Raises InputError for another kind that makes pods."""
    for obj in objects:
        notes = text_map(obj["metadata"].get("annotations"))
        arrival_s = duration_s(notes.get(ARRIVAL, "0s")) or 0.0
        match obj["kind"]:
            case "Pod":
                yield _asked(1, obj, arrival_s)
            case "Job":
                for task in section(obj, "spec").get("tasks") or ():
                    yield _asked(int(task.get("replicas", 1)), section(task, "template"), arrival_s)
            case "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "CronJob" | "JobFlow":
                raise InputError(f"bounds are of pods and Volcano Jobs; there is a {obj['kind']}")
            case _:
                pass


def _asked(count: int, pod: Mapping[str, object], arrival_s: float) -> AskedPods:
    notes = text_map(section(dict(pod), "metadata").get("annotations"))
    return AskedPods(
        count, request_of(section(dict(pod), "spec")), arrival_s, duration_s(notes.get(DURATION, "")) or 0.0
    )


def packing_bound(objects: Sequence[Object], resource: str) -> float:
    """Return the largest part of a resource that can be allocated together (`util.RESOURCE` of a placement).

    A pod that fits no empty node counts for nothing. Raises InputError for a cluster without the resource.
    """
    nodes = _nodes(objects)
    whole = sum(node.get(resource, 0.0) for node in nodes)
    if not whole:
        raise InputError(f"no node has {resource}")
    pods = [each for each in asked_pods(objects) if any(_fits(each.request, node) for node in nodes)]
    others = {CPU, MEMORY, *(name for each in pods for name in each.request)} - {resource}
    most = min(whole, sum(each.pods * each.request.get(resource, 0.0) for each in pods))
    for other in others:
        most = min(most, _within(pods, resource, other, sum(node.get(other, 0.0) for node in nodes)))
    return most / whole


def _within(pods: Sequence[AskedPods], resource: str, other: str, capacity: float) -> float:
    """Return how much of a resource fits into a capacity of another one, if pods may be cut: the most for the least
    first.
    """

    def price(each: AskedPods) -> float:
        return each.request.get(other, 0.0) / each.request[resource]

    found = 0.0
    for each in sorted((one for one in pods if one.request.get(resource)), key=price):
        needs = each.pods * each.request.get(other, 0.0)
        part = 1.0 if needs <= capacity else capacity / needs
        found += part * each.pods * each.request[resource]
        capacity -= part * needs
        if part < 1.0:
            break
    return found


def makespan_bound(objects: Sequence[Object]) -> float:
    """Return the seconds from the first arrival to the last end, at least, of pods that all run once."""
    nodes, pods = _nodes(objects), [*asked_pods(objects)]
    if not pods:
        return 0.0
    first = min(each.arrival_s for each in pods)
    last = max(each.arrival_s + each.lasts_s for each in pods)
    for resource in {name for each in pods for name in each.request}:
        capacity, work = sum(node.get(resource, 0.0) for node in nodes), 0.0
        for each in sorted(pods, key=lambda each: each.arrival_s, reverse=True):
            work += each.pods * each.request.get(resource, 0.0) * each.lasts_s
            last = max(last, each.arrival_s + work / capacity) if capacity else last
    return last - first


def _nodes(objects: Sequence[Object]) -> list[Amount]:
    return [allocatable_of(section(obj, "status")) for obj in objects if obj["kind"] == "Node"]


def _fits(request: Amount, node: Amount) -> bool:
    return all(amount <= node.get(name, 0.0) for name, amount in request.items())
