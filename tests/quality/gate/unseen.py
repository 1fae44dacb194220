"""Twenty more changes, written down with what was expected before any was tried: twelve bad, eight harmless."""

from __future__ import annotations

from pumice.core.objects.metadata import Object
from pumice.lab.builders import gang, nodes, priority_class, queue
from tests.quality.gate.harmless import PROMISED, WAITS
from tests.quality.gate.parts import (
    ALL_START,
    BATCH,
    CLASSES,
    FIRST,
    GANG,
    HIGH,
    LOW,
    NO_WORSE,
    PROD,
    SECOND,
    URGENT,
    Change,
    Plugin,
    backlog,
    conf,
    named,
    policy,
    quota,
    stated_node,
    switch,
    urgent_work,
)

PREEMPT = conf()
ALLOCATE = conf("allocate")
QUEUES = (*CLASSES, PROD, BATCH)
HIGH_NO_WORSE = ("wait.mean[class=high]", "<=", "base + 15%")
GROUP = "volcano.sh/nodegroup-name"
LENIENT: Plugin = {"name": "predicates", "arguments": {"predicate.TaintTolerationEnable": "false"}}
NO_ORDER: Plugin = {"name": "priority", "enableJobOrder": False}
NOTHING_TO_ORDER: Plugin = {
    "name": "drf",
    "enableJobOrder": False,
    "enablePreemptable": False,
    "enableReclaimable": False,
}
TAINTED = stated_node("node-0", taint="team")
GROUPS: tuple[Plugin, ...] = (*SECOND, "nodegroup")
PACKED: tuple[Plugin, ...] = ("predicates", {"name": "binpack", "arguments": {"binpack.weight": 10}})


def grouped(wanted: str) -> Object:
    """Queue prod on one group of nodes."""
    made = queue("prod", weight=4)
    made["spec"]["affinity"] = {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [wanted]}}
    return made


def of_groups() -> list[Object]:
    """Two nodes of group a, one of group b, and prod's jobs."""
    found = [*nodes(2, cpu=8, name="a", labels={GROUP: "a"}), *nodes(1, cpu=8, name="b", labels={GROUP: "b"})]
    jobs = [gang(f"p-{n}", 1, cpu=2, duration="5m", queue="prod", arrival=f"{n + 1}s") for n in range(8)]
    return [*found, *jobs]


def with_memory() -> list[Object]:
    return [*nodes(2), *(gang(f"j-{n}", 2, memory="3Gi", queue="prod", arrival=f"{n}m") for n in range(3))]


def pairs() -> list[Object]:
    """Jobs of two pods, which are to stand apart."""
    return [*nodes(4, cpu=8), *(gang(f"pair-{n}", 2, duration="2m", arrival=f"{n * 40}s") for n in range(4))]


def preferred_elsewhere() -> Object:
    made = stated_node("node-3")
    made["spec"]["taints"] = [{"key": "old", "effect": "PreferNoSchedule"}]
    return made


def range_of(namespace: str, most: str) -> Object:
    limits = [{"type": "Container", "max": {"cpu": most}}]
    return named("LimitRange", "most", namespace=namespace, spec={"limits": limits})


def owned(obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "labels": {"owner": "team"}, "annotations": {"ticket": "17"}}}


def bare_urgent() -> list[Object]:
    """Urgent work whose urgent jobs name no class."""
    found = urgent_work()
    for job in found:
        if job["metadata"]["name"].startswith("urgent"):
            del job["spec"]["priorityClassName"]
    return found


UNSEEN_BAD = (
    Change(
        "urgent-class-preempts-never",
        policy(PREEMPT, *CLASSES),
        policy(PREEMPT, LOW, {**HIGH, "preemptionPolicy": "Never"}),
        urgent_work(),
        [URGENT],
    ),
    Change(
        "default-class-moved",
        policy(PREEMPT, LOW, {**HIGH, "globalDefault": True}),
        policy(PREEMPT, {**LOW, "globalDefault": True}, HIGH),
        bare_urgent(),
        [URGENT],
    ),
    Change(
        "classes-of-one-value",
        policy(ALLOCATE, *QUEUES),
        policy(ALLOCATE, {**LOW, "value": 1000}, HIGH, PROD, BATCH),
        backlog("default", "default"),
        [HIGH_NO_WORSE],
    ),
    Change(
        "capacity-without-deserved",
        policy(conf("allocate", first=(GANG,)), *QUEUES),
        policy(conf("allocate", first=(GANG,), second=("predicates", "capacity", "nodeorder")), *QUEUES),
        backlog(),
        [NO_WORSE],
    ),
    Change(
        "quota-of-pods",
        policy(ALLOCATE, *QUEUES, named("ResourceQuota", "pods", namespace="default", spec={"hard": {"pods": "60"}})),
        policy(ALLOCATE, *QUEUES, named("ResourceQuota", "pods", namespace="default", spec={"hard": {"pods": "3"}})),
        backlog(),
        [NO_WORSE],
    ),
    Change(
        "a-limit-below-the-pods",
        policy(ALLOCATE, *QUEUES, range_of("default", "4")),
        policy(ALLOCATE, *QUEUES, range_of("default", "1")),
        backlog(),
        [ALL_START],
        600,
    ),
    Change(
        "taints-not-looked-at",
        policy(ALLOCATE, *QUEUES, stated_node("node-0", taint="team")),
        policy(
            conf("allocate", second=(LENIENT, "proportion", "nodeorder")), *QUEUES, stated_node("node-0", taint="team")
        ),
        backlog(),
        [("placed[node=node-0]", "==", 0)],
    ),
    Change(
        "affinity-to-another-group",
        policy(conf("allocate", second=GROUPS), grouped("a")),
        policy(conf("allocate", second=GROUPS), grouped("b")),
        of_groups(),
        [("placed[queue=prod,node=b*]", "==", 0), ("wait.max[queue=prod]", "<=", "30s")],
        900,
    ),
    Change(
        "packing-in-place-of-spreading",
        policy(ALLOCATE),
        policy(conf("allocate", second=PACKED)),
        pairs(),
        [("together", "==", 0)],
    ),
    Change(
        "proportion-dropped",
        policy(conf("allocate", first=(GANG,)), *QUEUES),
        policy(conf("allocate", first=(GANG,), second=("predicates", "nodeorder")), *QUEUES),
        backlog(),
        [NO_WORSE],
    ),
    Change(
        "priority-orders-no-jobs",
        policy(ALLOCATE, *QUEUES),
        policy(conf("allocate", first=(NO_ORDER, GANG, "conformance")), *QUEUES),
        backlog("default", "default"),
        [HIGH_NO_WORSE],
    ),
    Change(
        "memory-below-a-gang",
        policy(ALLOCATE, queue("prod", capability={"memory": "12Gi"})),
        policy(ALLOCATE, queue("prod", capability={"memory": "5Gi"})),
        with_memory(),
        [ALL_START],
        600,
    ),
)

UNSEEN_HARMLESS = (
    Change(
        "plugins-of-a-tier-in-another-order",
        policy(PREEMPT, *QUEUES),
        policy(conf(second=("nodeorder", "proportion", "predicates")), *QUEUES),
        backlog(),
        WAITS,
    ),
    Change(
        "hyper-nodes-that-no-job-asks-for",
        policy(conf(second=(*SECOND, "network-topology-aware")), *QUEUES),
        policy(
            conf(second=(*SECOND, "network-topology-aware")),
            *QUEUES,
            switch("s0", 1, "node-0", "node-1"),
            switch("s1", 1, "node-2", "node-3"),
        ),
        urgent_work(),
        PROMISED,
    ),
    Change(
        "a-quota-of-another-namespace",
        policy(PREEMPT, *QUEUES),
        policy(PREEMPT, *QUEUES, {**quota(1), "metadata": {"name": "team", "namespace": "other"}}),
        backlog(),
        WAITS,
    ),
    Change(
        "a-node-that-is-better-avoided",
        policy(PREEMPT, *QUEUES, stated_node("node-3")),
        policy(PREEMPT, *QUEUES, preferred_elsewhere()),
        urgent_work(),
        PROMISED,
    ),
    Change(
        "parents-spelled-out",
        policy(PREEMPT, *QUEUES),
        policy(PREEMPT, *CLASSES, queue("prod", weight=4, parent="root"), queue("batch", weight=1, parent="root")),
        backlog(),
        WAITS,
    ),
    Change("owners-noted", policy(PREEMPT, *QUEUES), policy(PREEMPT, *map(owned, QUEUES)), backlog(), WAITS),
    Change(
        "a-plugin-that-has-nothing-to-order",
        policy(PREEMPT, *QUEUES),
        policy(conf(second=(*SECOND, NOTHING_TO_ORDER)), *QUEUES),
        backlog(),
        WAITS,
    ),
    Change(
        "values-in-the-same-order",
        policy(conf(first=FIRST), LOW, HIGH, PROD, BATCH),
        policy(conf(first=(*FIRST, "pdb")), priority_class("low", 500), priority_class("high", 501), PROD, BATCH),
        urgent_work(),
        PROMISED,
    ),
)
