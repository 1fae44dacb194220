# SPDX-License-Identifier: Apache-2.0
"""Findings need no run: they name settings that no plugin reads, and limits that the
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
from pumice.questions.gate.demands import Amounts, Demand, demands
from pumice.questions.gate.sides import Side
from pumice.units import amount

QUOTA_PLUGINS: Final = ("proportion", "capacity")
DESERVED_PLUGIN: Final = "capacity"
TOPOLOGY: Final = "network-topology-aware"
RECLAIMING: Final = ("reclaim", "gangreclaim")
REQUESTS: Final = "requests."
CHECK: Final = "check"
"""The rule of the findings of `pumice check`."""
_JOINING: Final = frozenset(("and", "or", "make", "makes", "is", "are"))
"""Words in which a sentence about two things differs from a sentence about one."""
_TIER: Final = re.compile(r"tiers\[\d+\]|\W+")


class PolicyFinding(NamedTuple):
    """Names a mistake in a policy: a `sentence` for people, and the `rule`, the `subject` (a queue,
    a namespace) and the `jobs` that it is about. The subject of what `check` says is its sentence.
    """

    sentence: str
    rule: str
    subject: str
    jobs: frozenset[str] = frozenset()

    def is_said_by(self, others: Sequence[PolicyFinding]) -> bool:
        """Return whether another side has the same finding, for no fewer jobs, whatever numbers the sentence has."""
        alike = [each for each in others if each.rule == self.rule]
        if self.rule == CHECK:
            return any(_words(self.subject) <= _words(each.subject) for each in alike)
        return any(self.subject == each.subject and self.jobs <= each.jobs for each in alike)


class PolicyScene(NamedTuple):
    """Contains one side and the workload under it."""

    side: Side
    objects: Sequence[Object]
    demands: Sequence[Demand]

    def of_kind(self, kind: str) -> list[Object]:
        """Return the objects of a kind."""
        return [obj for obj in self.objects if obj["kind"] == kind]

    def found(self, sentence: str, rule: str, subject: str = "", jobs: Sequence[str] = ()) -> PolicyFinding:
        """Return a finding about a subject, with the name that the workload gives it."""
        return PolicyFinding(sentence, rule, self.side.called(subject), frozenset(jobs))

    def has(self, *plugins: str) -> bool:
        """Return whether the configuration lists one of these plugins."""
        return any(self.side.settings.plugin(name) is not None for name in plugins)


def findings(side: Side, objects: Sequence[Object]) -> list[PolicyFinding]:
    """Return the mistakes in a policy, for this workload."""
    scene = PolicyScene(side, objects, demands(objects))
    said = [side.problem] if side.problem else []
    said += review(side.settings, objects).warnings
    found = [PolicyFinding(each, CHECK, side.called(each)) for each in said]
    for rule in RULES:
        found += rule(scene)
    return list(dict.fromkeys(found))


def new_in(found: Sequence[PolicyFinding], known: Sequence[PolicyFinding]) -> list[str]:
    """Return the sentences of findings that one side has and the other does not."""
    return [each.sentence for each in found if not each.is_said_by(known)]


def _words(finding: str) -> frozenset[str]:
    return frozenset(filter(None, _TIER.split(finding))) - _JOINING


# --- Rules


def _missing_queues(scene: PolicyScene) -> Iterator[PolicyFinding]:
    there = {obj["metadata"].get("name") for obj in scene.of_kind("Queue")} | {DEFAULT_QUEUE, "root"}
    for name in sorted({each.queue for each in scene.demands} - there):
        jobs = [each.name for each in scene.demands if each.queue == name]
        said = f"queue {name} does not exist: it is the queue of {_several(jobs)}"
        yield scene.found(said, "missing queue", name, jobs)


def _missing_classes(scene: PolicyScene) -> Iterator[PolicyFinding]:
    there = {obj["metadata"].get("name") for obj in scene.of_kind("PriorityClass")}
    there |= {"system-cluster-critical", "system-node-critical", ""}
    for name in sorted({each.priority_class for each in scene.demands} - there):
        jobs = [each.name for each in scene.demands if each.priority_class == name]
        said = f"PriorityClass {name} does not exist: it is the class of {_several(jobs)}"
        yield scene.found(said, "missing class", name, jobs)


def _limits(scene: PolicyScene) -> Iterator[PolicyFinding]:
    """Yield jobs that are larger than the limit of their queue."""
    if not scene.has(*QUOTA_PLUGINS):
        return
    for queue in scene.of_kind("Queue"):
        limit, name = _amounts(section(queue, "spec").get("capability")), str(queue["metadata"].get("name"))
        inside = [each for each in scene.demands if each.queue == name]
        yield from _too_large(scene, inside, limit, f"capability of queue {name}", name)


def _quotas(scene: PolicyScene) -> Iterator[PolicyFinding]:
    for quota in scene.of_kind("ResourceQuota"):
        meta = quota["metadata"]
        hard = section(section(quota, "spec"), "hard")
        amounts = {str(key).removeprefix(REQUESTS): value for key, value in hard.items()}
        namespace = meta.get("namespace") or "default"
        inside = [each for each in scene.demands if each.namespace == namespace]
        yield from _too_large(scene, inside, _amounts(amounts), f"ResourceQuota {meta.get('name')}", namespace)


def _too_large(
    scene: PolicyScene, demands: Sequence[Demand], limit: Amounts, whose: str, subject: str
) -> Iterator[PolicyFinding]:
    for resource, most in sorted(limit.items()):
        larger = [each for each in demands if each.least(resource) > most]
        if larger:
            largest = max(larger, key=lambda each: each.least(resource))
            asked = _text(resource, largest.least(resource))
            others = f" (so do {len(larger) - 1} others)" if len(larger) > 1 else ""
            said = f"{whose} is {_text(resource, most)}: {largest.name} needs {asked} to start{others}, and never will"
            yield scene.found(said, f"too small: {resource}", subject, [each.name for each in larger])


def _cuts(scene: PolicyScene) -> Iterator[PolicyFinding]:
    """Yield shares that reclaim moves back and forth, since a pod is larger than the rest of the share."""
    if not scene.has(DESERVED_PLUGIN) or not any(action in scene.side.settings.actions for action in RECLAIMING):
        return
    for queue in scene.of_kind("Queue"):
        name, deserved = str(queue["metadata"].get("name")), _amounts(section(queue, "spec").get("deserved"))
        inside = [each for each in scene.demands if each.queue == name]
        for resource, share in sorted(deserved.items()):
            sizes = {role.amounts[resource] for each in inside for role in each.roles if role.amounts.get(resource)}
            if len(sizes) == 1 and resource != MEMORY and share % (size := min(sizes)):
                said = (
                    f"deserved of queue {name} cuts a pod: {_text(resource, share)} is not a multiple of the "
                    f"{_text(resource, size)} that each of its pods asks for; two such queues may take a place from "
                    "each other for ever"
                )
                yield scene.found(said, f"cuts a pod: {resource}", name, [each.name for each in inside])


def _unread(scene: PolicyScene) -> Iterator[PolicyFinding]:
    """Yield settings of queues that no listed plugin reads."""
    reads = {
        "deserved": (DESERVED_PLUGIN,),
        "guarantee": QUOTA_PLUGINS,
        "capability": QUOTA_PLUGINS,
        "affinity": (NODE_GROUPS,),
    }
    for queue in scene.of_kind("Queue"):
        name = str(queue["metadata"].get("name"))
        for key, plugins in reads.items():
            if section(queue, "spec").get(key) and not scene.has(*plugins):
                said = f"{key} of queue {name} is without effect without plugin {' or '.join(plugins)}"
                yield scene.found(said, f"not read: {key}", name)


def _node_groups(scene: PolicyScene) -> Iterator[PolicyFinding]:
    """Yield queues that may use no node. nodegroup is strict by default: without an affinity a queue gets no node at
    all.
    """
    option = scene.side.settings.plugin(NODE_GROUPS)
    if option is None:
        return
    groups = {text_map(node["metadata"].get("labels")).get(NODE_GROUP_LABEL) for node in scene.of_kind("Node")}
    if groups <= {None}:
        yield scene.found(f"plugin {NODE_GROUPS}: no node has the label {NODE_GROUP_LABEL}", "no node group")
    strict = STRICT.of(option.arguments)
    inherits = option.is_enabled("Hierarchy")
    queues = {obj["metadata"].get("name"): section(obj, "spec") for obj in scene.of_kind("Queue")}
    for name in sorted({each.queue for each in scene.demands}):
        if not _affinity(name, queues, inherits=inherits) and (strict or None not in groups):
            said = f"plugin {NODE_GROUPS}: queue {name} has no affinity, so its pods may use no node (strict is on)"
            yield scene.found(said, "no affinity", name)


def _affinity(queue: str, queues: Mapping[Any, Object], *, inherits: bool) -> Object:
    """Return the affinity of a queue, or of its nearest ancestor that has one."""
    seen = set[str]()
    while queue in queues and queue not in seen:
        seen.add(queue)
        affinity = section(queues[queue], "affinity")
        if affinity or not inherits:
            return affinity
        queue = str(queues[queue].get("parent") or "")
    return {}


def _tiers(scene: PolicyScene) -> Iterator[PolicyFinding]:
    """Yield tiers of network topologies that jobs name and no HyperNode has."""
    tiers = {section(obj, "spec").get("tier") for obj in scene.of_kind("HyperNode")}
    names = {section(obj, "spec").get("tierName") for obj in scene.of_kind("HyperNode")}
    asking = [each for each in scene.demands if each.topology]
    if asking and not scene.has(TOPOLOGY):
        jobs = [each.name for each in asking]
        said = f"networkTopology of {_several(jobs)} is without effect without plugin {TOPOLOGY}"
        yield scene.found(said, "topology not read", "", jobs)
        return
    lacking = dict[str, list[str]]()
    for each in asking:
        if each.topology.get("mode", "hard") != "hard":
            continue
        tier, name = each.topology.get("highestTierAllowed"), each.topology.get("highestTierName")
        if isinstance(tier, int) and not any(isinstance(known, int) and known <= tier for known in tiers):
            lacking.setdefault(f"no HyperNode is of tier {tier} or below", []).append(each.name)
        if name and name not in names:
            lacking.setdefault(f"no HyperNode has the tier name {name!r}", []).append(each.name)
    for problem, jobs in lacking.items():
        yield scene.found(f"{problem}, and {_several(jobs)} may span no other: never placed", "no tier", problem, jobs)


def _amounts(said: Any) -> Amounts:
    """Return cores, bytes and pieces; the API refuses amounts that cannot be read."""
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


RULES: Final[tuple[Callable[[PolicyScene], Iterator[PolicyFinding]], ...]] = (
    _missing_queues,
    _missing_classes,
    _limits,
    _quotas,
    _cuts,
    _unread,
    _node_groups,
    _tiers,
)
