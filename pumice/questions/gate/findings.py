# SPDX-License-Identifier: Apache-2.0
"""Findings about a policy without a run: settings that no plugin reads, and limits that the
workload's own jobs cannot keep within. Only what is new in head counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pumice.belonging import DEFAULT_QUEUE
from pumice.core.errors import QuantityError
from pumice.core.messages.queue_tables import reckoned
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.plugins.nodegroup import LABEL as NODE_GROUP_LABEL
from pumice.core.plugins.nodegroup import NAME as NODE_GROUPS
from pumice.core.plugins.nodegroup import STRICT
from pumice.core.resources import Resource
from pumice.core.resources.amounts import CPU, MEMORY, PODS
from pumice.questions.check.review import review
from pumice.questions.gate.sides import Side
from pumice.questions.gate.workloads import QUEUE_NAME, objects_in
from pumice.questions.measures.amounts import request_of
from pumice.units import amount

Amounts = Mapping[str, float]
QUOTA_PLUGINS: Final = ("proportion", "capacity")
DESERVED_PLUGIN: Final = "capacity"
TOPOLOGY: Final = "network-topology-aware"
RECLAIMING: Final = ("reclaim", "gangreclaim")
REQUESTS: Final = "requests."
_JOINING: Final = frozenset(("and", "or", "make", "makes", "is", "are"))
"""Words by which a sentence about two differs from one about one of them."""
_TIER: Final = re.compile(r"tiers\[\d+\]|\W+")


class Demand(NamedTuple):
    """A job of the workload: what one pod of each role asks for, and how many there are; `minimum`: pods that must
    start together.
    """

    name: str
    namespace: str
    queue: str
    priority_class: str
    pods: tuple[tuple[int, Amounts], ...]
    minimum: int
    topology: Object

    def least(self) -> dict[str, float]:
        """Return what as many pods as must start together ask for at least."""
        left, total = self.minimum, dict[str, float]()
        for count, amounts in sorted(self.pods, key=lambda one: sum(one[1].values())):
            taken = min(left, count)
            left -= taken
            for name, asked in amounts.items():
                total[name] = total.get(name, 0.0) + taken * asked
        return total


class PolicyScene(NamedTuple):
    """One side and the workload under it."""

    side: Side
    objects: Sequence[Object]
    demands: Sequence[Demand]

    def of_kind(self, kind: str) -> list[Object]:
        """Return the objects of a kind."""
        return [obj for obj in self.objects if obj["kind"] == kind]

    def has(self, *plugins: str) -> bool:
        """Return whether one of these plugins is listed."""
        return any(self.side.settings.plugin(name) is not None for name in plugins)


def findings(side: Side, objects: Sequence[Object]) -> list[str]:
    """Return a sentence for each thing in a policy that is not what it seems, for this workload."""
    scene = PolicyScene(side, objects, tuple(_demands(objects)))
    found = [side.problem] if side.problem else []
    found += review(side.settings, objects).warnings
    for rule in RULES:
        found += rule(scene)
    return list(dict.fromkeys(found))


def new_in_head(base: Sequence[str], head: Sequence[str]) -> list[str]:
    """Return head's findings that base has not: in whatever order base names things, and if it names more of them."""
    known = [_words(each) for each in base]
    return [each for each in head if not any(_words(each) <= one for one in known)]


def _words(finding: str) -> frozenset[str]:
    return frozenset(filter(None, _TIER.split(finding))) - _JOINING


# --- The workload's jobs


def _demands(objects: Sequence[Object]) -> Iterator[Demand]:
    for obj in objects:
        try:
            found = _demand(obj)
        except (QuantityError, TypeError, ValueError, AttributeError):
            continue  # the API refuses it, which is a finding of its own
        if found is not None:
            yield found


def _demand(obj: Object) -> Demand | None:
    spec = section(obj, "spec")
    if obj["kind"] == "Job" and str(obj.get("apiVersion")).startswith("batch.volcano.sh/"):
        tasks = [(int(task.get("replicas", 1)), section(task, "template")) for task in objects_in(spec, "tasks")]
        minimum = int(spec.get("minAvailable") or sum(count for count, _ in tasks))
        return _of(obj, spec.get("queue"), spec.get("priorityClassName"), tasks, minimum)
    if obj["kind"] == "Pod":
        return _of(obj, None, spec.get("priorityClassName"), [(1, obj)], 1)
    if "template" in spec and "selector" in spec:
        count = int(spec.get("replicas", 1))
        return _of(
            obj,
            None,
            section(section(spec, "template"), "spec").get("priorityClassName"),
            [(count, spec["template"])],
            1,
        )
    return None


def _of(obj: Object, queue: object, priority: object, pods: list[tuple[int, Object]], minimum: int) -> Demand:
    meta = obj["metadata"]
    named = text_map(section(pods[0][1], "metadata").get("annotations")).get(QUEUE_NAME) if pods else None
    return Demand(
        f"{meta.get('namespace') or 'default'}/{meta.get('name')}",
        str(meta.get("namespace") or "default"),
        str(queue or named or DEFAULT_QUEUE),
        str(priority or ""),
        tuple((count, request_of(section(template, "spec"))) for count, template in pods),
        minimum,
        section(section(obj, "spec"), "networkTopology"),
    )


# --- Rules


def _missing_queues(scene: PolicyScene) -> Iterator[str]:
    there = {obj["metadata"].get("name") for obj in scene.of_kind("Queue")} | {DEFAULT_QUEUE, "root"}
    for name in sorted({each.queue for each in scene.demands} - there):
        jobs = [each.name for each in scene.demands if each.queue == name]
        yield f"queue {name} does not exist: it is the queue of {_several(jobs)}"


def _missing_classes(scene: PolicyScene) -> Iterator[str]:
    there = {obj["metadata"].get("name") for obj in scene.of_kind("PriorityClass")}
    there |= {"system-cluster-critical", "system-node-critical", ""}
    for name in sorted({each.priority_class for each in scene.demands} - there):
        jobs = [each.name for each in scene.demands if each.priority_class == name]
        yield f"PriorityClass {name} does not exist: it is the class of {_several(jobs)}"


def _limits(scene: PolicyScene) -> Iterator[str]:
    """Yield jobs that are larger than all that their queue may ever have."""
    if not scene.has(*QUOTA_PLUGINS):
        return
    for queue in scene.of_kind("Queue"):
        limit = _amounts(section(queue, "spec").get("capability"))
        name = queue["metadata"].get("name")
        yield from _too_large(
            [each for each in scene.demands if each.queue == name], limit, f"capability of queue {name}"
        )


def _quotas(scene: PolicyScene) -> Iterator[str]:
    for quota in scene.of_kind("ResourceQuota"):
        meta = quota["metadata"]
        hard = section(section(quota, "spec"), "hard")
        amounts = {str(key).removeprefix(REQUESTS): value for key, value in hard.items()}
        inside = [each for each in scene.demands if each.namespace == (meta.get("namespace") or "default")]
        yield from _too_large(inside, _amounts(amounts), f"ResourceQuota {meta.get('name')}")


def _too_large(demands: Sequence[Demand], limit: Amounts, whose: str) -> Iterator[str]:
    for resource, most in sorted(limit.items()):
        larger = [each for each in demands if each.least().get(resource, 0.0) > most]
        if larger:
            largest = max(larger, key=lambda each: each.least()[resource])
            asked = _text(resource, largest.least()[resource])
            others = f" (so do {len(larger) - 1} others)" if len(larger) > 1 else ""
            yield f"{whose} is {_text(resource, most)}: {largest.name} needs {asked} to start{others}, and never will"


def _cuts(scene: PolicyScene) -> Iterator[str]:
    """Yield shares that reclaim passes back and forth, since a pod is larger than the rest of the share."""
    if not scene.has(DESERVED_PLUGIN) or not any(action in scene.side.settings.actions for action in RECLAIMING):
        return
    for queue in scene.of_kind("Queue"):
        name, deserved = queue["metadata"].get("name"), _amounts(section(queue, "spec").get("deserved"))
        for resource, share in sorted(deserved.items()):
            sizes = {
                amounts[resource]
                for each in scene.demands
                if each.queue == name
                for _, amounts in each.pods
                if amounts.get(resource)
            }
            if len(sizes) == 1 and resource != MEMORY and share % (size := min(sizes)):
                yield (
                    f"deserved of queue {name} cuts a pod: {_text(resource, share)} is not a multiple of the "
                    f"{_text(resource, size)} that each of its pods asks for; two such queues may take a place from "
                    "each other for ever"
                )


def _unread(scene: PolicyScene) -> Iterator[str]:
    """Yield settings of queues that no listed plugin reads."""
    reads = {
        "deserved": (DESERVED_PLUGIN,),
        "guarantee": QUOTA_PLUGINS,
        "capability": QUOTA_PLUGINS,
        "affinity": (NODE_GROUPS,),
    }
    for queue in scene.of_kind("Queue"):
        for key, plugins in reads.items():
            if section(queue, "spec").get(key) and not scene.has(*plugins):
                yield (
                    f"{key} of queue {queue['metadata'].get('name')} is without effect without plugin "
                    f"{' or '.join(plugins)}"
                )


def _node_groups(scene: PolicyScene) -> Iterator[str]:
    """Queues that may use no node. nodegroup is strict by default: without an affinity a queue gets no node at all."""
    option = scene.side.settings.plugin(NODE_GROUPS)
    if option is None:
        return
    groups = {text_map(node["metadata"].get("labels")).get(NODE_GROUP_LABEL) for node in scene.of_kind("Node")}
    if groups <= {None}:
        yield f"plugin {NODE_GROUPS}: no node has the label {NODE_GROUP_LABEL}"
    strict = STRICT.of(option.arguments)
    inherits = option.is_enabled("Hierarchy")
    queues = {obj["metadata"].get("name"): section(obj, "spec") for obj in scene.of_kind("Queue")}
    for name in sorted({each.queue for each in scene.demands}):
        if not _affinity(name, queues, inherits=inherits) and (strict or None not in groups):
            yield f"plugin {NODE_GROUPS}: queue {name} has no affinity, so its pods may use no node (strict is on)"


def _affinity(queue: str, queues: Mapping[Any, Object], *, inherits: bool) -> Object:
    """Return the affinity of a queue, or that of its nearest ancestor with one."""
    seen = set[str]()
    while queue in queues and queue not in seen:
        seen.add(queue)
        affinity = section(queues[queue], "affinity")
        if affinity or not inherits:
            return affinity
        queue = str(queues[queue].get("parent") or "")
    return {}


def _tiers(scene: PolicyScene) -> Iterator[str]:
    """Tiers of network topologies that jobs name and no HyperNode has."""
    tiers = {section(obj, "spec").get("tier") for obj in scene.of_kind("HyperNode")}
    names = {section(obj, "spec").get("tierName") for obj in scene.of_kind("HyperNode")}
    asking = [each for each in scene.demands if each.topology]
    if asking and not scene.has(TOPOLOGY):
        named = _several([each.name for each in asking])
        yield f"networkTopology of {named} is without effect without plugin {TOPOLOGY}"
        return
    for each in asking:
        if each.topology.get("mode", "hard") != "hard":
            continue
        tier, name = each.topology.get("highestTierAllowed"), each.topology.get("highestTierName")
        if isinstance(tier, int) and not any(isinstance(known, int) and known <= tier for known in tiers):
            yield f"{each.name} may span HyperNodes up to tier {tier}, and no HyperNode has such a tier: never placed"
        if name and name not in names:
            yield f"{each.name} may span HyperNodes up to tier {name!r}, and no HyperNode has such a tier: never placed"


def _amounts(said: Any) -> Amounts:
    """Return cores, bytes and pieces; what cannot be read is left to the API."""
    try:
        resource = Resource.from_list(said or {})
    except (QuantityError, TypeError, AttributeError):
        return {}
    found = {CPU: resource.milli_cpu / 1000, MEMORY: resource.memory}
    found |= {name: value / (1 if name == PODS else 1000) for name, value in (resource.scalars or {}).items()}
    return {name: value for name, value in found.items() if name in (said or {})}


def _text(resource: str, value: float) -> str:
    return amount(resource, reckoned(resource, value))


def _several(names: Sequence[str]) -> str:
    return names[0] + _others(len(names) - 1)


def _others(count: int) -> str:
    return "" if count < 1 else f" and {count} more"


RULES: Final[tuple[Callable[[PolicyScene], Iterator[str]], ...]] = (
    _missing_queues,
    _missing_classes,
    _limits,
    _quotas,
    _cuts,
    _unread,
    _node_groups,
    _tiers,
)
