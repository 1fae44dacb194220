# SPDX-License-Identifier: Apache-2.0
"""Comparison of an outcome with a case's expectation: exact, key by key, each difference with its place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal

from pumice.core.objects.metadata import Object, is_list, is_mapping

Group = Literal["decisions", "numbers", "words"]

GROUP_OF: Final[Mapping[str, Group]] = {
    "binds": "decisions",
    "evictions": "decisions",
    "pipelined": "decisions",
    "uncommitted": "decisions",
    "awaitingVolumes": "decisions",
    "phases": "decisions",
    "taskStatus": "decisions",
    "nominated": "decisions",
    "podAnnotations": "decisions",
    "queueAllocated": "numbers",
    "numaAllocatable": "numbers",
    "conditions": "words",
    "podConditions": "words",
}
"""Score that each key of an OUTCOME counts for, of the three."""


class Absence(Enum):
    """Stands for a key that one side does not have; an enumeration, so that it keeps its identity between processes."""

    ABSENT = "nothing"

    def __repr__(self) -> str:
        return self.value


ABSENT: Final = Absence.ABSENT


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where expectation and outcome differ: `path` is dotted, with the cycle in front of a story's."""

    group: Group
    path: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.path}: expected {_short(self.expected)}, was {_short(self.found)}"


def compare_outcome(expected: Mapping[str, Any], found: Mapping[str, Any], where: str = "") -> list[Difference]:
    """Return differences over the keys that the expectation has; others are not checked. KeyError: an unknown key."""
    differences: list[Difference] = []
    for key, value in expected.items():
        wanted: Any = sorted(value) if key == "evictions" else value
        differences += compare_value(GROUP_OF[key], wanted, found.get(key), where + key)
    return differences


def compare_value(group: Group, expected: object, found: object, path: str) -> list[Difference]:
    """Return differences of two plain values, as deep as both are mappings. Numbers are compared as float64."""
    return [Difference(group, *parts) for parts in _walk(expected, found, path)]


def _walk(expected: object, found: object, path: str) -> Iterator[tuple[str, Any, Any]]:
    if is_mapping(expected):
        right = found if is_mapping(found) else {}
        for key in sorted({*expected, *right}):
            yield from _walk(expected.get(key, ABSENT), right.get(key, ABSENT), f"{path}.{key}")
    elif not _equal(expected, found):
        yield path, expected, found


def _equal(expected: Any, found: Any) -> bool:
    if _is_number(expected) and _is_number(found):
        return float(expected) == float(found)
    return bool(expected == found)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _short(value: object) -> str:
    if is_list(value) and value and all(is_mapping(one) for one in value):
        return "; ".join(_condition(one) for one in value)
    return repr(value)


def _condition(condition: Mapping[str, Any]) -> str:
    """Return a PodGroup condition in one breath: `Unschedulable (NotEnoughResources): 2/4 tasks ...`."""
    kind = str(condition.get("type", condition))
    if condition.get("status", "True") != "True":
        kind += f"={condition['status']}"
    return f"{kind} ({condition.get('reason', '')}): {condition.get('message', '')}"


# --- Volcano's table tests


EXPECTED: Final = (
    "binds",
    "bindCount",
    "evictions",
    "pipelined",
    "phases",
    "taskStatus",
    "bindsPerHyperNode",
)
"""Keys that `expect` of an upstream case may have."""


def compare_expect(case: Object, outcome: Object, job_of: Mapping[str, str]) -> list[Difference]:
    """Return differences from `expect` of an upstream case. `job_of`: "ns/pod" -> "ns/podgroup"."""
    expect: Object = case["expect"]
    differences: list[Difference] = []
    for key, wanted in expect.items():
        if key == "pipelined":
            differences += _compare_pipelined(wanted, outcome, job_of)
            continue
        found = _found(key, case, outcome, wanted)
        differences += compare_value("decisions", _normal(key, wanted), found, f"expect.{key}")
    return differences


def _found(key: str, case: Object, outcome: Object, wanted: Any) -> Any:
    if key == "bindCount":
        return len(outcome["binds"])
    if key == "bindsPerHyperNode":
        return sorted(binds_per_hyper_node(case, outcome["binds"]).values())
    if key in ("phases", "taskStatus"):  # only the named jobs are checked
        return {job: outcome[key].get(job) for job in wanted}
    return outcome[key]


def _normal(key: str, wanted: Any) -> Any:
    return sorted(wanted) if key in ("evictions", "bindsPerHyperNode") else wanted


def _compare_pipelined(wanted: Mapping[str, list[str]], outcome: Object, job_of: Mapping[str, str]) -> list[Difference]:
    """Compare pipelined tasks: at least one of each named job, and each on one of the named nodes; other jobs are not
    checked.
    """
    nodes: dict[str, list[str]] = {job: [] for job in wanted}
    for pod, node in outcome["pipelined"].items():
        nodes.setdefault(job_of.get(pod, ""), []).append(node)
    return [
        Difference("decisions", f"expect.pipelined.{job}", f"one or more on {allowed}", nodes[job])
        for job, allowed in wanted.items()
        if not nodes[job] or not set(nodes[job]) <= set(allowed)
    ]


def binds_per_hyper_node(case: Object, binds: Mapping[str, str]) -> Counter[str]:
    """Return binds counted by the lowest-tier hypernode of their node."""
    lowest = _lowest_hyper_nodes(case["objects"])
    return Counter(lowest[node] for node in binds.values() if node in lowest)


def _lowest_hyper_nodes(objects: Iterable[Object]) -> dict[str, str]:
    listed = list(objects)
    nodes: list[str] = [obj["metadata"]["name"] for obj in listed if obj["kind"] == "Node"]
    hyper_nodes = [obj for obj in listed if obj["kind"] == "HyperNode"]
    lowest: dict[str, str] = {}
    for hyper_node in sorted(hyper_nodes, key=lambda obj: int(obj["spec"].get("tier", 0)), reverse=True):
        for member in hyper_node["spec"].get("members") or ():
            if member.get("type") == "Node":
                name: str = hyper_node["metadata"]["name"]
                lowest.update(dict.fromkeys(_selected(member["selector"], nodes), name))
    return lowest


def _selected(selector: Object, nodes: Iterable[str]) -> list[str]:
    if exact := selector.get("exactMatch"):
        return [exact["name"]]
    regex: Object = selector.get("regexMatch") or {}
    if pattern := regex.get("pattern"):
        return [node for node in nodes if re.fullmatch(pattern, node)]
    return []
