"""Twenty-five bad changes of policies, each with what a team would have expected."""

from __future__ import annotations

from pumice.core.objects.metadata import Object
from pumice.lab.builders import gang, nodes, queue
from tests.quality.gate.parts import (
    ALL_START,
    BACK,
    BATCH,
    CAPACITY,
    CLASSES,
    FIRST,
    GANG,
    HIGH,
    LOW,
    NO_WORSE,
    PROD,
    RECLAIM,
    SECOND,
    URGENT,
    Change,
    backlog,
    budget,
    conf,
    policy,
    quota,
    shares,
    stated_node,
    switch,
    taken_back,
    urgent_work,
    with_labels,
    with_pods,
)

PREEMPT = conf()
QUEUES = (*CLASSES, PROD, BATCH)


def _gangs() -> list[Object]:
    """Gangs that deadlock where each gets a part of what it needs."""
    return [*nodes(2, cpu=8), *(gang(f"g-{number}", 6, cpu=2, duration="2m", arrival="1s") for number in range(4))]


def _selecting() -> list[Object]:
    picky = with_pods(gang("picky", 1, cpu=1, duration="1m", arrival="5s"), nodeSelector={"disk": "ssd"})
    return [*nodes(2, cpu=8), picky, gang("other", 2, cpu=1, duration="1m", arrival="1s")]


def _spanning() -> list[Object]:
    near = gang("near", 4, cpu=4, duration="1m", arrival="1s")
    near["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    return [*nodes(4, cpu=8), near]


def _protected() -> list[Object]:
    web = with_labels(gang("web", 4, cpu=2, min_available=1, duration="20m", priority="low", arrival="1s"), app="web")
    urgent = gang("urgent-0", 2, cpu=2, duration="1m", priority="high", arrival="60s")
    other = gang("low-0", 4, cpu=2, min_available=1, duration="20m", priority="low", arrival="2s")
    return [*nodes(2, cpu=8), web, other, urgent]


def _large_and_small() -> list[Object]:
    small = [gang(f"s-{number}", 1, cpu=1, duration="10m", arrival=f"{number * 5 + 1}s") for number in range(8)]
    return [*nodes(4, cpu=8), *small, gang("large", 3, cpu=8, duration="2m", arrival="60s")]


def _best_effort() -> list[Object]:
    tiny = gang("tiny", 1, cpu=0, duration="1m", arrival="2s")
    for task in tiny["spec"]["tasks"]:
        task["template"]["spec"]["containers"][0]["resources"] = {}
    return [*nodes(1, cpu=8), tiny, gang("usual", 1, cpu=1, duration="1m", arrival="1s")]


def _equals(first: int, second: int) -> tuple[Object, Object]:
    return queue("q1", deserved={"cpu": first}), queue("q2", deserved={"cpu": second})


def _boundary() -> list[Object]:
    """Two nodes of the size of a pod: a-0 comes back to the place that it lost for b-1, and loses it again."""
    return [
        *nodes(2, cpu=4),
        gang("a-0", 1, cpu=4, duration="10m", queue="q1"),
        gang("b-0", 1, cpu=1, duration="30m", queue="q2", arrival="1s"),
        gang("b-1", 1, cpu=4, duration="10m", queue="q2", arrival="30s"),
    ]


OVERCOMMIT = {"name": "overcommit", "arguments": {"overcommit-factor": 3.0}}
ENQUEUE = "enqueue, allocate, preempt, backfill"
PACKING = {"name": "binpack", "arguments": {"binpack.weight": 10}}

BAD = (
    Change(
        "gang-may-veto",
        policy(PREEMPT, *CLASSES),
        policy(conf(first=("priority", "gang", "conformance")), *CLASSES),
        urgent_work(),
        [URGENT],
    ),
    Change(
        "preempt-dropped",
        policy(PREEMPT, *CLASSES),
        policy(conf("allocate, backfill"), *CLASSES),
        urgent_work(),
        [URGENT],
    ),
    Change("enqueue-in-front", policy(PREEMPT, *CLASSES), policy(conf(ENQUEUE), *CLASSES), urgent_work(), [URGENT]),
    Change(
        "classes-swapped",
        policy(PREEMPT, *CLASSES),
        policy(PREEMPT, {**LOW, "value": 1000}, {**HIGH, "value": 10}),
        urgent_work(),
        [URGENT],
    ),
    Change(
        "class-lowered", policy(PREEMPT, *CLASSES), policy(PREEMPT, LOW, {**HIGH, "value": 10}), urgent_work(), [URGENT]
    ),
    Change(
        "overcommit-back-to-its-default",
        policy(conf(ENQUEUE, second=(OVERCOMMIT, "predicates", "nodeorder")), *CLASSES),
        policy(conf(ENQUEUE, second=("overcommit", "predicates", "nodeorder")), *CLASSES),
        urgent_work(),
        [URGENT],
    ),
    Change(
        "reclaim-dropped",
        policy(RECLAIM, *shares()),
        policy(conf("allocate, backfill", second=CAPACITY), *shares()),
        taken_back(),
        [BACK],
        900,
    ),
    Change(
        "batch-not-reclaimable",
        policy(RECLAIM, *shares()),
        policy(RECLAIM, *shares(reclaimable=False)),
        taken_back(),
        [BACK],
        900,
    ),
    Change("deserved-lowered", policy(RECLAIM, *shares()), policy(RECLAIM, *shares(2, 14)), taken_back(), [BACK], 900),
    Change(
        "guarantee-dropped",
        policy(conf(second=CAPACITY), queue("prod", deserved={"cpu": 6}, guarantee={"cpu": 6}), queue("batch")),
        policy(conf(second=CAPACITY), queue("prod"), queue("batch")),
        taken_back(),
        [BACK],
        900,
    ),
    Change(
        "deserved-cuts-a-pod",
        policy(RECLAIM, *_equals(4, 4)),
        policy(RECLAIM, *_equals(3, 5)),
        _boundary(),
        [("evictions.max", "<=", 3)],
        120,
    ),
    Change(
        "gang-dropped",
        policy(PREEMPT),
        policy(conf(first=("priority", "conformance"))),
        _gangs(),
        [("unstarted[name=g-*]", "==", 0)],
        1200,
    ),
    Change(
        "priority-dropped",
        policy(conf("allocate, backfill"), *QUEUES),
        policy(conf("allocate, backfill", first=(GANG, "conformance")), *QUEUES),
        backlog("default", "default"),
        [("wait.mean[class=high]", "<=", "base + 15%")],
    ),
    Change(
        "weights-swapped",
        policy(conf("allocate", first=(GANG,)), *QUEUES),
        policy(conf("allocate", first=(GANG,)), *CLASSES, queue("prod", weight=1), queue("batch", weight=4)),
        backlog(),
        [NO_WORSE],
    ),
    Change(
        "capability-too-small-for-a-job",
        policy(conf("allocate"), *QUEUES),
        policy(conf("allocate"), *CLASSES, queue("prod", weight=4, capability={"cpu": 1}), BATCH),
        backlog(),
        [("unstarted[queue=prod]", "==", 0)],
    ),
    Change(
        "capability-lowered",
        policy(conf("allocate"), *QUEUES),
        policy(conf("allocate"), *CLASSES, queue("prod", weight=4, capability={"cpu": 4}), BATCH),
        backlog(),
        [NO_WORSE],
    ),
    Change(
        "quota-lowered",
        policy(conf("allocate"), *QUEUES, quota(64)),
        policy(conf("allocate"), *QUEUES, quota(4)),
        backlog(),
        [NO_WORSE],
    ),
    Change(
        "nodes-tainted",
        policy(conf("allocate"), *QUEUES, stated_node("node-0")),
        policy(conf("allocate"), *QUEUES, stated_node("node-0", taint="team")),
        backlog(),
        [NO_WORSE],
    ),
    Change(
        "label-dropped",
        policy(conf("allocate"), stated_node("node-1", {"disk": "ssd"})),
        policy(conf("allocate"), stated_node("node-1", {"disk": "hdd"})),
        _selecting(),
        [ALL_START],
        300,
    ),
    Change(
        "nodegroup-strict",
        policy(conf("allocate"), *QUEUES),
        policy(conf("allocate", second=(*SECOND, "nodegroup")), *QUEUES),
        backlog(),
        [ALL_START],
        600,
    ),
    Change(
        "switches-too-small",
        policy(
            conf("allocate", second=(*SECOND, "network-topology-aware")),
            switch("s0", 1, "node-0", "node-1"),
            switch("s1", 1, "node-2", "node-3"),
        ),
        policy(
            conf("allocate", second=(*SECOND, "network-topology-aware")),
            *(switch(f"s{number}", 1, f"node-{number}") for number in range(4)),
            switch("top", 2, "s0", "s1", "s2", "s3", kind="HyperNode"),
        ),
        _spanning(),
        [ALL_START],
        300,
    ),
    Change(
        "budget-dropped",
        policy(conf(first=(*FIRST, "pdb")), *CLASSES, budget(4, "web")),
        policy(conf(first=FIRST), *CLASSES),
        _protected(),
        [("evictions[name=web]", "==", 0)],
        900,
    ),
    Change(
        "packing-dropped",
        policy(conf("allocate", second=("predicates", PACKING)), *CLASSES),
        policy(conf("allocate", second=SECOND), *CLASSES),
        _large_and_small(),
        [("wait.max[name=large]", "<=", "10s")],
    ),
    Change(
        "queue-renamed-alone",
        policy(conf("allocate"), *QUEUES),
        policy(conf("allocate"), *CLASSES, queue("production", weight=4), BATCH),
        backlog(),
        [ALL_START],
        600,
    ),
    Change(
        "backfill-dropped",
        policy(conf("allocate, backfill")),
        policy(conf("allocate")),
        _best_effort(),
        [ALL_START],
        300,
    ),
)
