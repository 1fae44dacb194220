# SPDX-License-Identifier: Apache-2.0
"""Changes about the job itself and its queue's existence: minAvailable, priority, preemption policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Final

from pumice.config.schema import SchedulerConfig
from pumice.core.objects.metadata import Object, section
from pumice.core.plugins.capacity.limits import leaves_below
from pumice.core.quantity import quantity_of
from pumice.core.resources import Resource
from pumice.questions.explain.advice.changes import Change, ChangeFamily, Edit, Identity, single
from pumice.questions.explain.advice.nodes import on_pods, pod_called
from pumice.questions.oneshot.obstacles import is_in_a_tree

PREEMPTS: Final = "PreemptLowerPriority"
EVICTING: Final = frozenset(("preempt", "reclaim", "gangpreempt", "gangreclaim"))


@dataclass(frozen=True)
class WaitingGroup:
    """The job by its objects. `asked`: the request of its waiting pods together (resource -> amount in the scheduler's
    units), else its minimum; `grain`: all requested amounts are multiples of it; `waiting`: its waiting pods;
    `actions`: those of the cycle.
    """

    objects: Mapping[Identity, Object]
    pod_group: Object
    waiting: Sequence[str]
    asked: Mapping[str, float]
    grain: Mapping[str, int]
    actions: Sequence[str]

    @property
    def preempts(self) -> bool:
        """Return whether other pods may be evicted for the group."""
        return bool(EVICTING & set(self.actions))

    @property
    def who(self) -> Identity:
        """Return the PodGroup."""
        metadata = self.pod_group["metadata"]
        return "PodGroup", str(metadata.get("namespace") or ""), str(metadata["name"])

    @property
    def queue(self) -> Identity:
        """Return its queue."""
        return "Queue", "", str(self.pod_group["spec"].get("queue") or "default")


def amounts_in(resource: Resource) -> dict[str, float]:
    """Return the amounts of a resource: cpu in milli-cores, memory in bytes, scalars as the scheduler counts them."""
    found = {"cpu": resource.milli_cpu, "memory": resource.memory, **(resource.scalars or {})}
    return {name: value for name, value in found.items() if value > 0}


def about_group(group: WaitingGroup) -> Iterator[ChangeFamily]:
    """Yield all changes about the job itself."""
    yield from _fewer(group)
    queue = group.objects.get(group.queue)
    if queue is None:
        name = group.queue[2]
        yield single(0, f"create queue {name}", Edit(group.queue, _new_queue))
    elif section(queue, "status").get("state") != "Open":
        yield single(0, f"open queue {group.queue[2]}", Edit(group.queue, _open))
    yield from _priorities(group)
    yield from _gates(group)


def about_misplaced(config: SchedulerConfig, objects: Mapping[Identity, Object]) -> Iterator[ChangeFamily]:
    """Move PodGroups from queues with children, while capacity schedules nothing: each to the first queue below."""
    if not is_in_a_tree(config):
        return
    parents = {
        who[2]: str(section(obj, "spec").get("parent") or "") for who, obj in objects.items() if who[0] == "Queue"
    }
    words, edits = list[str](), list[Edit]()
    for who in sorted(who for who in objects if who[0] == "PodGroup"):
        queue = str(section(objects[who], "spec").get("queue") or "default")
        below = leaves_below(parents, queue)
        if below:
            words.append(f"move PodGroup {who[1]}/{who[2]} from queue {queue} to {below[0]}, which is below it")
            edits.append(Edit(who, partial(_moved, below[0])))
    if edits:
        yield single(0, "; ".join(words), *edits)


def _moved(queue: str, pod_group: Object) -> None:
    pod_group["spec"] = {**section(pod_group, "spec"), "queue": queue}


def _new_queue(queue: Object) -> None:
    queue.update({"spec": {"weight": 1}, "status": {"state": "Open"}})


def _open(queue: Object) -> None:
    queue["status"] = {**(queue.get("status") or {}), "state": "Open"}


def _fewer(group: WaitingGroup) -> Iterator[ChangeFamily]:
    needed = int(group.pod_group["spec"].get("minMember") or 0)
    if needed < 2:
        return

    def of(size: int) -> Change:
        def change(pod_group: Object) -> None:
            spec = pod_group["spec"]
            spec["minMember"] = needed - size
            spec.pop("minTaskMember", None)
            if minimum := spec.get("minResources"):
                share = (needed - size) / needed
                spec["minResources"] = {name: _scaled(name, value, share) for name, value in minimum.items()}

        words = f"minAvailable {needed - size} instead of {needed}"
        return Change(words, (Edit(group.who, change),), amount=size / needed)

    yield ChangeFamily(2, needed - 1, of)


def _scaled(name: str, value: str, share: float) -> str:
    quantity = quantity_of(value)
    return (
        str(ceil(quantity.value() * share))
        if name in ("memory", "pods")
        else f"{ceil(quantity.milli_value() * share)}m"
    )


# --- Priority


def _priorities(group: WaitingGroup) -> Iterator[ChangeFamily]:
    own = group.pod_group["spec"].get("priorityClassName")
    classes = {who[2]: obj for who, obj in group.objects.items() if who[0] == "PriorityClass"}
    value = _worth(classes.get(str(own), {}))
    for name, obj in sorted(classes.items(), key=lambda item: (_worth(item[1]), item[0])):
        if _worth(obj) > value:
            yield _class(group, name, obj)
    never = [pod for pod in group.waiting if _spec(group, pod).get("preemptionPolicy") == "Never"]
    if never and group.preempts:
        yield on_pods(1, f"preemptionPolicy {PREEMPTS}", never, _preempting)


def _gates(group: WaitingGroup) -> Iterator[ChangeFamily]:
    """Yield pods that wait until their scheduling gates are removed."""
    gated = {pod: gates for pod in group.waiting if (gates := _spec(group, pod).get("schedulingGates"))}
    if gated:
        names = sorted({str(gate.get("name")) for gates in gated.values() for gate in gates})
        yield on_pods(0, f"remove scheduling gates ({', '.join(names)})", [*gated], _without_gates)


def _without_gates(pod: Object) -> None:
    pod["spec"].pop("schedulingGates")


def _spec(group: WaitingGroup, pod: str) -> Object:
    return dict(group.objects[pod_called(pod)].get("spec") or {})


def _preempting(pod: Object) -> None:
    pod["spec"]["preemptionPolicy"] = "PreemptLowerPriority"


def _worth(priority_class: Object) -> int:
    return int(priority_class.get("value") or 0)


def _class(group: WaitingGroup, name: str, priority_class: Object) -> ChangeFamily:
    """Return the change that gives a group a priority class: pods get its value and its preemption policy, as at
    admission."""
    policy = str(priority_class.get("preemptionPolicy") or PREEMPTS)

    def pod(obj: Object) -> None:
        obj["spec"].update(priorityClassName=name, priority=_worth(priority_class), preemptionPolicy=policy)

    def whole(obj: Object) -> None:
        obj["spec"]["priorityClassName"] = name

    rank = 2 if group.preempts else 4
    return single(
        rank, f"priority class {name}", Edit(group.who, whole), *[Edit(pod_called(key), pod) for key in group.waiting]
    )
