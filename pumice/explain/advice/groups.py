"""Changes about the job itself and its queue: minAvailable, priority, capability, deserved, weight, quotas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from core.objects.metadata import section
from core.quantity import quantity_of
from core.resources import Resource
from pumice.explain.advice.changes import Change, ChangeFamily, Edit, Identity, Object, identity_of, single
from pumice.explain.advice.nodes import on_pods, pod_called

OTHERS: Final = 4
"""A limit is raised by up to so many times what the job asks for: others that wait come first."""
HEAVIEST: Final = 100
"""More than so much is no weight that people give."""


@dataclass(frozen=True)
class WaitingGroup:
    """The job as its objects say it. `step`: how much a limit is raised at a time (resource -> amount in the
    scheduler's units), `steps`: how often it may be; `waiting`: its pods that wait.
    """

    objects: Mapping[Identity, Object]
    pod_group: Object
    waiting: Sequence[str]
    step: Mapping[str, float]
    steps: int
    preempts: bool

    @property
    def who(self) -> Identity:
        """The PodGroup."""
        metadata = self.pod_group["metadata"]
        return "PodGroup", str(metadata.get("namespace") or ""), str(metadata["name"])

    @property
    def queue(self) -> Identity:
        """Its queue."""
        return "Queue", "", str(self.pod_group["spec"].get("queue") or "default")


def amounts_in(resource: Resource) -> dict[str, float]:
    """What it consists of: cpu in milli-cores, memory in bytes, scalars as the scheduler counts them."""
    found = {"cpu": resource.milli_cpu, "memory": resource.memory, **(resource.scalars or {})}
    return {name: value for name, value in found.items() if value > 0 and name != "pods"}


def about_group(group: WaitingGroup) -> Iterator[ChangeFamily]:
    """All there are."""
    yield from _fewer(group)
    queue = group.objects.get(group.queue)
    if queue is None:
        name = group.queue[2]
        yield single(0, f"create queue {name}", Edit(group.queue, _new_queue))
    else:
        if section(queue, "status").get("state", "Open") != "Open":
            yield single(0, f"open queue {group.queue[2]}", Edit(group.queue, _open))
        yield from _limits(group, queue)
    yield from _quotas(group)
    yield from _priorities(group)


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

        return Change(f"minAvailable {needed - size} instead of {needed}", (Edit(group.who, change),))

    yield ChangeFamily(2, needed - 1, of)


def _scaled(name: str, value: str, share: float) -> str:
    quantity = quantity_of(value)
    return (
        str(ceil(quantity.value() * share))
        if name in ("memory", "pods")
        else f"{ceil(quantity.milli_value() * share)}m"
    )


# --- limits


def _limits(group: WaitingGroup, queue: Object) -> Iterator[ChangeFamily]:
    """Its queue's, and those of the queues above."""
    for who in _upwards(group, queue):
        spec = section(group.objects[who], "spec")
        for field in ("capability", "deserved"):
            if listed := _raisable(group.step, spec.get(field)):
                what = f"queue {who[2]}: {field}"
                yield from _raised(group, who, (("spec", field),), listed, what, group.step)
    weight = int(queue["spec"].get("weight") or 1)
    if weight < HEAVIEST:

        def heavier(size: int) -> Change:
            words = f"queue {group.queue[2]}: weight {weight + size} instead of {weight}"
            return Change(words, (Edit(group.queue, lambda obj: obj["spec"].update(weight=weight + size)),))

        yield ChangeFamily(3, HEAVIEST - weight, heavier)


def _upwards(group: WaitingGroup, queue: Object) -> Iterator[Identity]:
    seen = set[Identity]()
    who = identity_of(queue)
    while who in group.objects and who not in seen:
        yield who
        seen.add(who)
        who = ("Queue", "", str(section(group.objects[who], "spec").get("parent") or ""))


def _quotas(group: WaitingGroup) -> Iterator[ChangeFamily]:
    """Of its namespace: what limits what the job asks for at least, by the names that quotas have for it."""
    minimum: dict[str, str] = section(section(group.pod_group, "spec"), "minResources")
    step = {name: _in_thousandths(name, text) / group.steps for name, text in minimum.items()}
    for who, quota in group.objects.items():
        if who[:2] == ("ResourceQuota", group.who[1]):
            hard = section(section(quota, "status"), "hard") or section(section(quota, "spec"), "hard")
            if listed := _raisable(step, hard):
                paths = (("spec", "hard"), ("status", "hard"))
                yield from _raised(group, who, paths, listed, f"quota {who[2]}: hard", step)


def _in_thousandths(name: str, text: str) -> float:
    """Memory in bytes, all else in thousandths."""
    quantity = quantity_of(text)
    return float(quantity.value() if name.endswith("memory") else quantity.milli_value())


def _raisable(step: Mapping[str, float], limits: Mapping[str, str] | None) -> dict[str, str]:
    """The entries that limit what the job asks for."""
    return {name: str(text) for name, text in (limits or {}).items() if step.get(name)}


def _raised(
    group: WaitingGroup,
    who: Identity,
    paths: Sequence[tuple[str, str]],
    listed: dict[str, str],
    what: str,
    step: Mapping[str, float],
) -> Iterator[ChangeFamily]:
    """Each entry by itself, and all together."""

    def family(rank: int, names: Sequence[str]) -> ChangeFamily:
        def of(size: int) -> Change:
            after = {name: _more(name, listed[name], step[name] * size) for name in names}

            def change(obj: Object) -> None:
                for part, field in paths:
                    held = obj.setdefault(part, {})
                    held[field] = {**(held.get(field) or {}), **after}

            said = ", ".join(f"{name} {text} instead of {listed[name]}" for name, text in after.items())
            return Change(f"{what} {said}", (Edit(who, change),))

        return ChangeFamily(rank, OTHERS * group.steps, of)

    for name in listed:
        yield family(2, [name])
    if len(listed) > 1:
        yield family(3, list(listed))


def _more(name: str, text: str, added: float) -> str:
    """The quantity and so much more: of memory in bytes, of all else in thousandths."""
    more = f"{ceil(added)}" if name.endswith("memory") else f"{ceil(added)}m"
    return quantity_of(text).plus(quantity_of(more)).canonical()


# --- priority


def _priorities(group: WaitingGroup) -> Iterator[ChangeFamily]:
    own = group.pod_group["spec"].get("priorityClassName")
    classes = {who[2]: int(obj.get("value") or 0) for who, obj in group.objects.items() if who[0] == "PriorityClass"}
    value = classes.get(str(own), 0)
    for name, worth in sorted(classes.items(), key=lambda item: (item[1], item[0])):
        if worth > value:
            yield _class(group, name, worth)
    never = [pod for pod in group.waiting if _spec(group, pod).get("preemptionPolicy") == "Never"]
    if never and group.preempts:
        yield on_pods(1, "preemptionPolicy PreemptLowerPriority", never, _preempting)


def _spec(group: WaitingGroup, pod: str) -> Object:
    return dict(group.objects[pod_called(pod)].get("spec") or {})


def _preempting(pod: Object) -> None:
    pod["spec"]["preemptionPolicy"] = "PreemptLowerPriority"


def _class(group: WaitingGroup, name: str, worth: int) -> ChangeFamily:
    def pod(obj: Object) -> None:
        obj["spec"].update(priorityClassName=name, priority=worth)

    def whole(obj: Object) -> None:
        obj["spec"]["priorityClassName"] = name

    rank = 2 if group.preempts else 4
    return single(
        rank, f"priority class {name}", Edit(group.who, whole), *[Edit(pod_called(key), pod) for key in group.waiting]
    )
