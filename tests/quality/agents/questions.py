"""Forty questions with known answers: what an agent calls, at most three times, and where in the answers it looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pumice
from pumice.yaml_text import dump_yaml
from tests.quality.agents.clusters import EXAMPLES

Results = list[dict[str, Any]]
Call = tuple[str, dict[str, Any]]

NO_PREEMPTION: Final = (
    'actions: "enqueue, allocate"\n'
    "tiers: [{plugins: [{name: priority}, {name: gang}]}, {plugins: [{name: predicates}, {name: nodeorder}]}]\n"
)


@dataclass(frozen=True)
class Question:
    """`find` takes the answer out of the results of the calls."""

    cluster: str
    asked: str
    calls: list[Call]
    find: Callable[[Results], Any]
    answer: Any


def _why(cluster: str, asked: str, name: str, answer: Any, key: str = "reason", **more: Any) -> Question:
    return Question(cluster, asked, [("why_pending", {"object": name, **more})], lambda found: found[0][key], answer)


def _waiting(found: Results) -> list[str]:
    return [each["made_for"] for each in found[0]["waiting"]]


def _texts(found: Results) -> str:
    return " / ".join(each["text"] for each in found[0]["story"])


def _yaml(obj: Any) -> str:
    return dump_yaml(obj)


SMALL: Final = pumice.gang("small", pods=2, cpu=1, namespace="lab")
NOWHERE: Final = pumice.gang("lost", pods=1, cpu=1, queue="nowhere", namespace="lab")

DAY: Final = [
    Question("day", "Which jobs wait?", [("who_is_next", {})], _waiting, ["production/serve", "research/huge"]),
    Question("day", "Who is next?", [("who_is_next", {"first": 1})], _waiting, ["production/serve"]),
    _why("day", "Why does huge wait?", "research/huge", "LargerThanAnyNode"),
    _why("day", "Why does serve not have all its pods?", "production/serve", "FreeInPieces"),
    _why(
        "day",
        "How many nodes refuse huge, and for what?",
        "research/huge",
        {"Insufficient nvidia.com/gpu": 25},
        "nodes",
    ),
    Question(
        "day",
        "How many GPUs does the largest node have, and how many does huge ask for?",
        [("who_is_next", {})],
        lambda found: [
            (number["allowed"], number["asked"])
            for each in found[0]["waiting"]
            for number in each["wait"]["numbers"]
            if each["made_for"] == "research/huge"
        ],
        [(4.0, 8.0)],
    ),
    Question(
        "day",
        "Would weight 9 for research change anything within ten minutes?",
        [("what_if", {"set": ["queue/research:spec.weight=9"], "horizon": "10m"})],
        lambda found: found[0]["same"],
        True,
    ),
    Question(
        "day",
        "What would be evicted for the urgent job?",
        [("dry_run", {"manifest": (EXAMPLES / "urgent.yaml").read_text("utf-8"), "cycles": 1})],
        lambda found: {name.rpartition("-worker")[0] for name in found[0]["cycles"][0]["evictions"]},
        {"research/sweep"},
    ),
    Question(
        "day",
        "Would other.conf have placed serve whole?",
        [("compare_configurations", {"config": (EXAMPLES / "other.conf").read_text("utf-8")})],
        lambda found: (
            found[0]["changed"]["jobs"]["production/serve"]["pods_bound" if False else "bound"]
            if "bound" in found[0]["changed"]["jobs"]["production/serve"]
            else sorted(found[0]["changed"]["jobs"]["production/serve"])
        ),
        {"before": 7, "after": 8},
    ),
    Question(
        "day",
        "Did huge ever get a pod?",
        [("story", {"object": "research/huge"})],
        lambda found: ("decided to bind" in _texts(found), found[0]["waits"]["reason"]),
        (False, "LargerThanAnyNode"),
    ),
]

PREEMPTED: Final = [
    Question("preempted", "Which job lacks a pod?", [("who_is_next", {})], _waiting, ["default/low"]),
    _why("preempted", "Where did low-worker-1 go?", "default/low-worker-1", "Placed", kind="pod"),
    _why("preempted", "Why does low-worker-0 wait?", "default/low-worker-0", "InUse", kind="pod"),
    Question(
        "preempted",
        "For whom was low-worker-0 evicted?",
        [("compare_configurations", {"config": NO_PREEMPTION})],
        lambda found: found[0]["first_difference"]["recorded"]["preemptor"],
        "default/urgent-worker-0",
    ),
    Question(
        "preempted",
        "How many evictions would low have had without preemption?",
        [("compare_configurations", {"config": NO_PREEMPTION})],
        lambda found: found[0]["changed"]["jobs"]["default/low"]["evicted"],
        {"before": 1, "after": 0},
    ),
    Question(
        "preempted",
        "When did urgent come, after the beginning?",
        [("story", {"object": "default/urgent"}), ("story", {"object": "default/low"})],
        lambda found: found[0]["story"][0]["at"] - found[1]["story"][0]["at"],
        60.0,
    ),
    Question(
        "preempted",
        "What is the smallest change that lets low have all its pods?",
        [("what_if", {"until_starts": "default/low"})],
        lambda found: found[0]["answers"][0]["changes"],
        ["--add-nodes 1:like=node-0"],
    ),
    Question(
        "preempted",
        "Would one more node place all of low at once?",
        [("what_if", {"add_nodes": ["1:like=node-0"], "horizon": "30m"})],
        lambda found: (
            found[0]["jobs"]["default/low"]["code"],
            found[0]["jobs"]["default/low"]["after"]["all_placed_s"],
        ),
        ("AllPlacedEarlier", 0.0),
    ),
    Question(
        "preempted",
        "How much of the cpu of queue default is allocated?",
        [("queues", {"queue": "default"})],
        lambda found: (
            found[0]["queues"]["default"]["allocated"]["cpu"],
            found[0]["queues"]["default"]["capability"]["cpu"],
        ),
        (8.0, 8.0),
    ),
    Question(
        "preempted",
        "Who is in the way of low?",
        [("who_is_next", {})],
        lambda found: found[0]["waiting"][0]["wait"]["in_the_way"],
        ["default/low", "default/urgent"],
    ),
]

MANIFESTS: Final = [
    Question(
        "manifests",
        "Which jobs would wait after the next cycle?",
        [("who_is_next", {})],
        lambda found: sorted(_waiting(found)),
        ["lab/giant", "lab/narrow", "lab/picky"],
    ),
    _why("manifests", "Why would giant wait?", "lab/giant", "LargerThanCluster"),
    _why("manifests", "Why would narrow wait?", "lab/narrow", "QueueCapability"),
    _why("manifests", "Why would picky wait?", "lab/picky", "NoNodeAllowed"),
    _why("manifests", "Would fits be placed?", "lab/fits", "Placed"),
    Question(
        "manifests",
        "What would let narrow start?",
        [("what_would_help", {"object": "lab/narrow", "budget_s": 2})],
        lambda found: found[0]["tried"]["helps"][0]["changes"],
        ["queue narrow: capability cpu 4 instead of 2"],
    ),
    Question(
        "manifests",
        "Would cpu 8 for the queue narrow let its job start?",
        [("what_if", {"set": ["queue/narrow:spec.capability.cpu=8"], "horizon": "10m"})],
        lambda found: {name: job["code"] for name, job in found[0]["jobs"].items()},
        {"lab/narrow": "Starts"},
    ),
    Question(
        "manifests",
        "Is it known when giant starts, and when fits does?",
        [("eta", {"samples": 2, "jobs": ["lab/giant", "lab/fits"]})],
        lambda found: {name: found[0][name]["known"] for name in ("lab/giant", "lab/fits")},
        {"lab/giant": False, "lab/fits": True},
    ),
    Question(
        "manifests",
        "Would a job of two small pods be placed, and where?",
        [("dry_run", {"manifest": _yaml(SMALL), "cycles": 1})],
        lambda found: sorted(node for pod, node in found[0]["cycles"][0]["binds"].items() if "small" in pod),
        ["plain-0", "plain-1"],
    ),
    Question(
        "manifests",
        "Would a job for a queue that does not exist be accepted?",
        [("dry_run", {"manifest": _yaml(NOWHERE)})],
        lambda found: (found[0]["input"]["refused"], any("nowhere" in each for each in found[0]["remarks"])),
        (1, True),
    ),
]

SERVER: Final = [
    Question("server", "Which job waits?", [("who_is_next", {})], _waiting, ["default/waits"]),
    _why("server", "Why does waits wait?", "default/waits", "Overcommit"),
    _why("server", "Does runs run?", "default/runs", "Running", "state"),
    Question(
        "server",
        "How many cpu does queue default hold?",
        [("queues", {"queue": "default"})],
        lambda found: found[0]["queues"]["default"]["allocated"]["cpu"],
        12.0,
    ),
    Question(
        "server",
        "What is the weight of team?",
        [("queues", {})],
        lambda found: found[0]["queues"]["team"]["weight"],
        2,
    ),
    Question(
        "server",
        "Would two more nodes let waits start?",
        [("what_if", {"add_nodes": ["2:like=node-0"], "horizon": "10m"})],
        lambda found: found[0]["jobs"]["default/waits"]["code"],
        "Starts",
    ),
    Question(
        "server",
        "Would a pod of one cpu find room?",
        [("dry_run", {"manifest": _yaml(pumice.gang("one", pods=1, cpu=1))})],
        lambda found: found[0]["jobs"]["default/one"]["after"]["bound"],
        1,
    ),
    Question(
        "server",
        "Would waits start if runs were deleted?",
        [("what_if", {"delete": ["job/runs"], "horizon": "10m"})],
        lambda found: found[0]["jobs"]["default/waits"]["code"],
        "Starts",
    ),
    Question(
        "server",
        "Is it known when waits starts, while runs never ends?",
        [("eta", {"samples": 2, "horizon": "1h"})],
        lambda found: found[0]["default/waits"]["known"],
        False,
    ),
    Question(
        "server",
        "What would let waits start?",
        [("what_would_help", {"object": "default/waits", "budget_s": 5})],
        lambda found: found[0]["tried"]["helps"][0]["fit"],
        3,
    ),
]

QUESTIONS: Final = [*DAY, *PREEMPTED, *MANIFESTS, *SERVER]
