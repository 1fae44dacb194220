# SPDX-License-Identifier: Apache-2.0
"""A pod as the scheduler sees it: a task. Source: Volcano `NewTaskInfo` (`api/job_info.go`)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from pumice.core.go_numbers import parse_int
from pumice.core.life.task import TaskStatus, status_of
from pumice.core.objects.metadata import Object, interned, key_of, parse_bool, parse_time, section, text_map
from pumice.core.objects.parts import SCHEDULERS
from pumice.core.objects.pod_template import PodTemplate, read_template, with_scalars, without_scalars
from pumice.core.state.dimensions import Dimensions

# --- The state of a pod, which changes while it lives
# Source: Volcano `getTaskStatus` (`api/helpers.go`).

PodState = tuple[
    TaskStatus, str, bool, float, str, tuple[str, str] | None, float, bool, tuple[tuple[str, str | None], ...]
]
"""The last fields of a :class:`pumice.core.objects.pod.Task`, in their order: from `status` to `claim_names`."""

_NEVER = None, 0.0  # nothing is said of its place


def pod_state(pod: Object) -> PodState:
    """Return the state in which the pod's task ends."""
    status: Object = pod.get("status") or {}  # at every change of every pod: no call for each section
    meta: Object = pod.get("metadata") or {}
    spec: Object = pod.get("spec") or {}
    deleting, node = bool(meta.get("deletionTimestamp")), spec.get("nodeName")
    conditions: list[Object] = status.get("conditions") or []
    condition, scheduled_at = _scheduled(conditions) if conditions else _NEVER
    started, claims = status.get("startTime"), status.get("resourceClaimStatuses")
    return (
        status_of(status.get("phase"), deleting, node),
        interned(node) if node else "",
        deleting,
        parse_time(started) if started else 0.0,
        status.get("nominatedNodeName") or "",
        condition,
        scheduled_at,
        deleting and _preempted(conditions),
        _claim_names(claims) if claims else (),
    )


def _scheduled(conditions: list[Object]) -> tuple[tuple[str, str] | None, float]:
    """Return the PodScheduled condition: why the pod is not scheduled, or since when it is."""
    for condition in conditions:
        if condition.get("type") == "PodScheduled":
            told = condition.get("status")
            if told == "True":
                return None, parse_time(condition.get("lastTransitionTime"))
            if told == "False":
                return (condition.get("reason") or "", condition.get("message") or ""), 0.0
            # Conditions are a map by type (API conventions), so no second one follows.
            break
    return _NEVER


def _preempted(conditions: list[Object]) -> bool:
    for condition in conditions:
        if condition.get("type") == "DisruptionTarget":
            return (condition.get("status"), condition.get("reason")) == ("True", "PreemptionByScheduler")
    return False


def _claim_names(told: list[Object]) -> tuple[tuple[str, str | None], ...]:
    return tuple([(str(each.get("name")), each.get("resourceClaimName")) for each in told])


TEMPLATE_HASH: Final = "pod-template-hash"
"""The label by which a Deployment tells the pods of its templates apart."""
GROUP_NAME = "scheduling.k8s.io/group-name"
TASK_SPEC = "volcano.sh/task-spec"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
TASK_PRIORITY = "volcano.sh/task-priority"
PREEMPTABLE = "volcano.sh/preemptable"
REVOCABLE_ZONE = "volcano.sh/revocable-zone"
QUEUE_ALLOCATION_GATE = "scheduling.volcano.sh/queue-allocation-gate"

_WAITED_FOR = (*SCHEDULERS, "", None)
_TEXTS: Final = 4096
"""Number of dictionaries of labels and annotations that are remembered: pods of one job come one after the other."""


class _Container(msgspec.Struct, omit_defaults=True, gc=False, rename="camel"):
    """The fields of a container that scheduling reads. Fields that differ between the pods of a role (env) must stay
    out.
    """

    name: Any = None
    resources: Any = None
    ports: Any = None
    image: Any = None
    restart_policy: Any = None


class _PodSpec(msgspec.Struct, omit_defaults=True, gc=False, rename="camel"):
    """The fields of a pod spec that scheduling reads."""

    node_selector: Any = None
    affinity: Any = None
    tolerations: Any = None
    topology_spread_constraints: Any = None
    volumes: Any = None
    resource_claims: Any = None
    scheduling_gates: Any = None
    preemption_policy: Any = None
    overhead: Any = None
    resources: Any = None
    host_network: Any = None
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None


class Task(msgspec.Struct, eq=False, gc=False):
    """One pod. Immutable once built (the view replaces it as a whole); values that change in a cycle live in columns at
    `row`. A Struct, since it is made whenever a pod changes, and without cycles of references; made by position, since
    names cost ten times as much. From `status` on its fields change while the pod lives (`pod_state`).

    `job` is "namespace/podgroup-name" or "" for a pod without one. `created` and `started` are seconds since the epoch,
    0.0 for none. `index` is the trailing number of the pod's name where Volcano compares by it (CompareTask), else
    None. `condition` is (reason, message) of the PodScheduled=False condition the API has now, None without one.
    `pod_priority` is spec.priority, which no annotation overrides; `scheduled_at` the time of PodScheduled=True;
    `preempted`: terminating because a scheduler preempted it. `claim_names`: of the resource claims that were made for
    it, by its own names for them (None: it needs none after all).
    """

    row: int
    uid: str
    namespace: str
    name: str
    key: str
    job: str
    role: str
    priority: int
    priority_class: str
    created: float
    index: int | None
    template: PodTemplate
    labels: dict[str, str]
    annotations: dict[str, str]
    preemptable: bool
    revocable_zone: str
    gated: bool
    scheduler: str
    pod_priority: int | None
    status: TaskStatus
    node_name: str
    deleting: bool
    started: float
    nominated: str
    condition: tuple[str, str] | None
    scheduled_at: float = 0.0
    preempted: bool = False
    claim_names: tuple[tuple[str, str | None], ...] = ()

    @property
    def only_volcano_gate(self) -> bool:
        """Return whether the single scheduling gate is Volcano's own queue-allocation gate."""
        return self.template.scheduling_gates == (QUEUE_ALLOCATION_GATE,)

    def asks_as(self, other: Task) -> bool:
        """Return whether the other is the same pod of the same job, asking for the same."""
        same_pod = self.uid == other.uid and self.job == other.job
        return same_pod and self.template is other.template and self.gated == other.gated


def _without_empty(content: bytes) -> Object:
    """Return a pod spec and its containers without empty fields."""
    spec: Object = {name: value for name, value in msgspec.json.decode(content).items() if value}
    for group in ("containers", "initContainers"):
        if group in spec:
            spec[group] = [{name: value for name, value in each.items() if value} for each in spec[group]]
    return spec


class TemplateTable:
    """Interns pod templates by content."""

    def __init__(self, dimensions: Dimensions) -> None:
        self._dimensions = dimensions
        self._by_content: dict[bytes, PodTemplate] = {}
        self._as_said: dict[bytes, PodTemplate] = {}  # empty fields and all
        self._with: dict[tuple[int, tuple[tuple[str, float], ...]], PodTemplate] = {}
        self._without: dict[int, PodTemplate] = {}  # by the number of a template that asks for more than its spec
        self._lighter: dict[tuple[int, frozenset[str]], PodTemplate] = {}
        self._uncounted: frozenset[str] = frozenset()
        self._count = 0
        self._texts: dict[bytes, dict[str, str]] = {}

    def texts(self, said: dict[str, str]) -> dict[str, str]:
        """Return equal labels or annotations as one shared dictionary for the pods of a job; the caller must not change
        it.
        """
        try:
            key = msgspec.msgpack.encode(said)
        except (OverflowError, TypeError):  # from a manifest: no texts, and nothing that MessagePack has
            return said
        found = self._texts.get(key)
        if found is None:
            if len(self._texts) >= _TEXTS:
                self._texts.clear()
            found = self._texts[key] = said
        return found

    def intern(self, spec: Object) -> PodTemplate:
        """Return the one template of this content. Raises QuantityError on a malformed request."""
        said = msgspec.json.encode(msgspec.convert(spec, _PodSpec))
        # Most pods are found by their text as it is. Only a new one is decoded to drop its empty fields.
        template = self._as_said.get(said)
        if template is None:
            template = self._as_said[said] = self._of(_without_empty(said))
        return self.lighter(template) if self._uncounted else template

    def _of(self, spec: Object) -> PodTemplate:
        content = msgspec.json.encode(spec)
        template = self._by_content.get(content)
        if template is None:
            template = read_template(spec, self._next(), self._dimensions)
            self._by_content[content] = template
        return template

    def _next(self) -> int:
        self._count += 1
        return self._count - 1

    def uncount(self, names: frozenset[str]) -> None:
        """Ignore resources of these names from now on; templates in use must be made `lighter`."""
        self._uncounted |= names

    def lighter(self, template: PodTemplate) -> PodTemplate:
        """Return the template without ignored resources."""
        if self._uncounted.isdisjoint(template.request.scalars or ()):
            return template
        key = template.number, self._uncounted
        found = self._lighter.get(key)
        if found is None:
            found = self._lighter[key] = without_scalars(template, self._next(), self._uncounted, self._dimensions)
            if template.number in self._without:
                self._without[found.number] = self.lighter(self._without[template.number])
        return found

    def asking_for(self, template: PodTemplate, more: tuple[tuple[str, float], ...]) -> PodTemplate:
        """Return the template with the requests of its spec and (resource, milli-units) `more`, by name."""
        plain = self._without.get(template.number, template)
        if not more:
            return plain
        found = self._with.get((plain.number, more))
        if found is None:
            number = self._next()
            found = self._with[plain.number, more] = with_scalars(plain, number, more, self._dimensions)
            self._without[number] = plain
        return found


def _preemptable(annotations: dict[str, str], labels: dict[str, str]) -> bool:
    for source in (annotations, labels):
        # An annotation hides a label even where it is not a boolean, and then counts as false.
        if PREEMPTABLE in source:
            return bool(parse_bool(source[PREEMPTABLE]))
    return True


def revocable_zone(annotations: dict[str, str]) -> str:
    """Return "*" or "" (GetPodRevocableZone: only the wildcard is supported)."""
    if REVOCABLE_ZONE in annotations:
        return "*" if annotations[REVOCABLE_ZONE] == "*" else ""
    preemptable = annotations.get(PREEMPTABLE)
    return "*" if preemptable and parse_bool(preemptable) else ""


def _priority(annotations: dict[str, str], pod_priority: int | None) -> int:
    text = annotations.get(TASK_PRIORITY)
    if text is not None:
        value = parse_int(text, 32)
        if value is not None:
            return value
    return 1 if pod_priority is None else pod_priority


def pod_index(name: str) -> int | None:
    """Return the number after the last dash of a name with at least three parts; None where it is not a number
    (GetPodIndexUnderTask).
    """
    parts = name.split("-")
    if len(parts) < 3:
        return None
    return parse_int(parts[-1])


def is_strange(spec: Object) -> bool:
    """Return whether the pod waits for a scheduler that does not run here: such a pod is in no job before it has a node
    (responsibleForPod, `cache/util.go`).
    """
    return bool(spec.get("schedulerName") not in _WAITED_FOR and not spec.get("nodeName"))


def stranger_of(task: Task) -> str:
    """Return the job "namespace/name" whose PodGroup a pod names without being its task, since it waits for another
    scheduler; "" without one.
    """
    group = task.annotations.get(GROUP_NAME)
    return key_of(task.namespace, group) if group and not task.job else ""


def read_task(pod: Object, row: int, templates: TemplateTable, asks: Object | None = None) -> Task:
    """Build the task of a pod; `asks`: its spec with the requests that count while it is resized. Raises QuantityError
    for a malformed request.
    """
    meta, spec = section(pod, "metadata"), section(pod, "spec")
    annotations, labels = (
        templates.texts(text_map(meta.get("annotations"))),
        templates.texts(text_map(meta.get("labels"))),
    )
    namespace, name = interned(meta.get("namespace") or "default"), meta.get("name") or ""
    key, group = key_of(namespace, name), annotations.get(GROUP_NAME)
    template, priority = templates.intern(spec if asks is None else asks), spec.get("priority")
    pod_priority = None if priority is None else int(priority)
    return Task(
        row,
        meta.get("uid") or key,
        namespace,
        name,
        key,
        interned(key_of(namespace, group)) if group and not is_strange(spec) else "",  # job
        annotations.get(TASK_SPEC) or labels.get(TASK_SPEC) or "",  # role
        _priority(annotations, pod_priority),
        interned(spec.get("priorityClassName") or ""),
        parse_time(meta.get("creationTimestamp")),
        pod_index(name),
        template,
        labels,
        annotations,
        _preemptable(annotations, labels),
        revocable_zone(annotations),
        bool(template.scheduling_gates),  # gated
        interned(spec.get("schedulerName") or ""),
        pod_priority,
        *pod_state(pod),
    )


_STATE = Task.__struct_fields__.index("status")


def read_state(task: Task, pod: Object) -> Task:
    """Return the task of a pod whose state alone has changed since this task, as `read_task` would."""
    fields: tuple[Any, ...] = (*astuple(task)[:_STATE], *pod_state(pod))
    return Task(*fields)
