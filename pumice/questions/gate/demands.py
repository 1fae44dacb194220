# SPDX-License-Identifier: Apache-2.0
"""Demands describe the jobs of a workload before a run: queue, class, and pods by role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pumice.belonging import DEFAULT_QUEUE
from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import Object, annotations_of, labels_of, objects_in, section
from pumice.core.objects.pod import GROUP_NAME, QUEUE_NAME, TASK_SPEC
from pumice.questions.measures.amounts import request_of

Amounts = Mapping[str, float]


class DemandRole(NamedTuple):
    """Describes equal pods of a job: their number, the requests of each, and their template."""

    name: str
    pods: int
    amounts: Amounts
    template: Object


class Demand(NamedTuple):
    """Describes a job, by the name under which a run records it. `minimum`: pods that must start together."""

    name: str
    queue: str
    priority_class: str
    roles: tuple[DemandRole, ...]
    minimum: int
    topology: Object

    @property
    def namespace(self) -> str:
        """Return the namespace."""
        return self.name.partition("/")[0]

    def least(self, resource: str) -> float:
        """Return the smallest amount of a resource that as many pods as must start together may ask for."""
        left, total = self.minimum, 0.0
        for role in sorted(self.roles, key=lambda one: one.amounts.get(resource, 0.0)):
            taken = min(left, role.pods)
            left -= taken
            total += taken * role.amounts.get(resource, 0.0)
        return total


def demands(objects: Sequence[Object]) -> tuple[Demand, ...]:
    """Return the jobs of a workload. Objects that the API will refuse are left out: loading reports them."""
    grouped = dict[str, list[Object]]()
    groups = {_named(obj) for obj in objects if obj["kind"] == "PodGroup"}
    for obj in objects:
        if obj["kind"] == "Pod" and (group := _group_of(obj)) in groups:
            grouped.setdefault(group, []).append(obj)
    found = list[Demand]()
    for obj in objects:
        if obj["kind"] == "Pod" and _group_of(obj) in groups:
            continue
        try:
            found += _demands(obj, grouped)
        except (QuantityError, TypeError, ValueError, AttributeError):
            continue
    return tuple(found)


def _demands(obj: Object, grouped: Mapping[str, Sequence[Object]]) -> Iterator[Demand]:
    spec = section(obj, "spec")
    name, priority = _named(obj), str(spec.get("priorityClassName") or "")
    if is_volcano_job(obj):
        roles = tuple(
            _role(str(task.get("name") or ""), int(task.get("replicas", 1)), section(task, "template"))
            for task in objects_in(spec, "tasks")
        )
        minimum = int(spec.get("minAvailable") or sum(role.pods for role in roles))
        yield Demand(name, _queue(spec.get("queue")), priority, roles, minimum, section(spec, "networkTopology"))
    elif obj["kind"] == "PodGroup":
        roles = tuple(_role(_role_of(pod), 1, pod) for pod in grouped.get(name, ()))
        minimum = int(spec.get("minMember") or 1)
        yield Demand(name, _queue(spec.get("queue")), priority, roles, minimum, section(spec, "networkTopology"))
    elif obj["kind"] == "Pod":
        yield Demand(name, _queue(_annotated(obj)), priority, (_role(_role_of(obj), 1, obj),), 1, {})
    elif template := section(spec, "template"):
        count = int(spec["replicas"] if "replicas" in spec else spec.get("parallelism", 1))
        queue = _annotated(template) or _annotated(obj)
        priority = str(section(template, "spec").get("priorityClassName") or "")
        yield Demand(name, _queue(queue), priority, (_role("", count, template),), 1, {})


def _role(name: str, count: int, template: Object) -> DemandRole:
    return DemandRole(name, count, request_of(section(template, "spec")), template)


def _queue(said: Any) -> str:
    return str(said or DEFAULT_QUEUE)


def _named(obj: Object) -> str:
    meta = obj["metadata"]
    return f"{meta.get('namespace') or 'default'}/{meta.get('name')}"


def _annotations(obj: Object) -> Mapping[str, str]:
    return annotations_of(obj)


def _group_of(pod: Object) -> str:
    return f"{pod['metadata'].get('namespace') or 'default'}/{_annotations(pod).get(GROUP_NAME, '')}"


def _annotated(obj: Object) -> str | None:
    return _annotations(obj).get(QUEUE_NAME)


def _role_of(pod: Object) -> str:
    labels = labels_of(pod)
    return _annotations(pod).get(TASK_SPEC) or labels.get(TASK_SPEC) or ""


def is_volcano_job(obj: Object) -> bool:
    """Return whether an object is a Volcano Job."""
    return obj["kind"] == "Job" and str(obj.get("apiVersion")).startswith("batch.volcano.sh/")
