"""The loose expectations of Volcano's own table tests, checked against an OUTCOME."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pumice.proof.conformance.compare import Difference, compare_value
from pumice.questions.oneshot.outcome import Outcome

Raw = dict[str, Any]

EXPECTED: Final = (
    "binds",
    "bindCount",
    "evictions",
    "pipelined",
    "phases",
    "taskStatus",
    "bindsPerHyperNode",
)
"""What `expect` of an upstream case may say."""


def compare_expect(case: Raw, outcome: Outcome, job_of: Mapping[str, str]) -> list[Difference]:
    """Differences from `expect` of an upstream case. `job_of`: "ns/pod" -> "ns/podgroup"."""
    expect: Raw = case["expect"]
    differences: list[Difference] = []
    for key, wanted in expect.items():
        if key == "pipelined":
            differences += _compare_pipelined(wanted, outcome, job_of)
            continue
        found = _found(key, case, outcome, wanted)
        differences += compare_value("decisions", _normal(key, wanted), found, f"expect.{key}")
    return differences


def _found(key: str, case: Raw, outcome: Outcome, wanted: Any) -> Any:
    if key == "bindCount":
        return len(outcome["binds"])
    if key == "bindsPerHyperNode":
        return sorted(binds_per_hyper_node(case, outcome["binds"]).values())
    if key in ("phases", "taskStatus"):  # only the named jobs are checked
        return {job: outcome[key].get(job) for job in wanted}
    return outcome[key]


def _normal(key: str, wanted: Any) -> Any:
    return sorted(wanted) if key in ("evictions", "bindsPerHyperNode") else wanted


def _compare_pipelined(
    wanted: Mapping[str, list[str]], outcome: Outcome, job_of: Mapping[str, str]
) -> list[Difference]:
    """At least one pipelined task of each named job, and each on one of the named nodes; no other job is looked at."""
    nodes: dict[str, list[str]] = {job: [] for job in wanted}
    for pod, node in outcome["pipelined"].items():
        nodes.setdefault(job_of.get(pod, ""), []).append(node)
    return [
        Difference("decisions", f"expect.pipelined.{job}", f"one or more on {allowed}", nodes[job])
        for job, allowed in wanted.items()
        if not nodes[job] or not set(nodes[job]) <= set(allowed)
    ]


def binds_per_hyper_node(case: Raw, binds: Mapping[str, str]) -> Counter[str]:
    """Binds counted by the lowest-tier hypernode of their node."""
    lowest = _lowest_hyper_nodes(case["objects"])
    return Counter(lowest[node] for node in binds.values() if node in lowest)


def _lowest_hyper_nodes(objects: Iterable[Raw]) -> dict[str, str]:
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


def _selected(selector: Raw, nodes: Iterable[str]) -> list[str]:
    if exact := selector.get("exactMatch"):
        return [exact["name"]]
    regex: Raw = selector.get("regexMatch") or {}
    if pattern := regex.get("pattern"):
        return [node for node in nodes if re.fullmatch(pattern, node)]
    return []
