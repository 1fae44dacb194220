"""Twenty-one harmless changes of policies: whatever moves, no promise is broken."""

from __future__ import annotations

import textwrap

import yaml

from pumice.lab.builders import priority_class, queue
from tests.quality.gate.parts import (
    ALL_START,
    BACK,
    BATCH,
    CLASSES,
    FIRST,
    HIGH,
    LOW,
    NO_WORSE,
    PROD,
    RECLAIM,
    SECOND,
    URGENT,
    Change,
    Files,
    backlog,
    budget,
    conf,
    named,
    policy,
    quota,
    shares,
    stated_node,
    taken_back,
    urgent_work,
)

PREEMPT = conf()
QUEUES = (*CLASSES, PROD, BATCH)
BASE = policy(PREEMPT, *QUEUES)
WAITS = (NO_WORSE, ("wait.mean", "<=", "base + 10%"), ALL_START)
PROMISED = (URGENT, ("evictions", "<=", "base + 10%"), ALL_START)
OVERCOMMIT = {"name": "overcommit", "arguments": {"overcommit-factor": 10}}
MORE = {"name": "overcommit", "arguments": {"overcommit-factor": 20}}
ENQUEUE = "enqueue, allocate, preempt, backfill"
SPELLED = {"name": "priority", "enableJobOrder": True, "enableTaskOrder": True, "enablePreemptable": True}
WEIGHTS = {"name": "nodeorder", "arguments": {"leastrequested.weight": 1, "nodeaffinity.weight": 2}}


def _reordered() -> Files:
    text = yaml.safe_dump_all([BATCH, PROD, HIGH, LOW], default_flow_style=True, sort_keys=False)
    return {"a.yaml": text, "scheduler.conf": PREEMPT}


def _config_map() -> Files:
    data = {"volcano-scheduler.conf": PREEMPT}
    held = named("ConfigMap", "volcano-scheduler-configmap", namespace="volcano-system", data=data)
    return {"config.yaml": yaml.safe_dump(held), "objects.yaml": BASE["objects.yaml"]}


def _split() -> Files:
    return {
        "scheduler.conf": PREEMPT,
        **{f"part-{place}.yaml": yaml.safe_dump(obj) for place, obj in enumerate(QUEUES)},
    }


def _remarked() -> Files:
    return {**BASE, "scheduler.conf": "# why preempt: urgent work\n" + textwrap.dedent(PREEMPT) + "# end\n"}


HARMLESS = (
    Change("other-order-and-style", BASE, _reordered(), urgent_work(), PROMISED),
    Change("a-file-for-each-object", BASE, _split(), urgent_work(), PROMISED),
    Change("comments", BASE, _remarked(), urgent_work(), PROMISED),
    Change("a-config-map", BASE, _config_map(), urgent_work(), PROMISED),
    Change("flags-spelled-out", BASE, policy(conf(first=(SPELLED, *FIRST[1:])), *QUEUES), urgent_work(), PROMISED),
    Change("weights-spelled-out", BASE, policy(conf(second=(*SECOND[:2], WEIGHTS)), *QUEUES), urgent_work(), PROMISED),
    Change("an-unused-queue", BASE, policy(PREEMPT, *QUEUES, queue("spare")), backlog(), WAITS),
    Change("an-unused-class", BASE, policy(PREEMPT, *QUEUES, priority_class("spare", 500)), urgent_work(), PROMISED),
    Change(
        "weights-scaled",
        BASE,
        policy(PREEMPT, *CLASSES, queue("prod", weight=40), queue("batch", weight=10)),
        backlog(),
        WAITS,
    ),
    Change(
        "values-scaled",
        BASE,
        policy(PREEMPT, {**LOW, "value": 100}, {**HIGH, "value": 10000}, PROD, BATCH),
        urgent_work(),
        PROMISED,
    ),
    Change("longer-period", BASE, policy(conf(period="500ms"), *QUEUES), backlog(), WAITS),
    Change("shorter-period", BASE, policy(conf(period="50ms"), *QUEUES), urgent_work(), PROMISED),
    Change(
        "queue-renamed",
        BASE,
        policy(PREEMPT, *CLASSES, queue("production", weight=4), BATCH),
        backlog(),
        WAITS,
        renamed={"prod": "production"},
    ),
    Change(
        "class-renamed",
        BASE,
        policy(PREEMPT, LOW, priority_class("urgent", 1000), PROD, BATCH),
        urgent_work(),
        PROMISED,
        renamed={"high": "urgent"},
    ),
    Change(
        "labels-that-nobody-reads",
        policy(PREEMPT, *QUEUES, stated_node("node-0")),
        policy(PREEMPT, *QUEUES, stated_node("node-0", {"rack": "r1"})),
        urgent_work(),
        PROMISED,
    ),
    Change(
        "capability-beyond-the-cluster",
        BASE,
        policy(PREEMPT, *CLASSES, queue("prod", weight=4, capability={"cpu": 1000}), BATCH),
        backlog(),
        WAITS,
    ),
    Change("quota-beyond-the-cluster", BASE, policy(PREEMPT, *QUEUES, quota(10000)), backlog(), WAITS),
    Change(
        "more-admitted",
        policy(conf(ENQUEUE, second=(OVERCOMMIT, *SECOND[:1], *SECOND[2:])), *QUEUES),
        policy(conf(ENQUEUE, second=(MORE, *SECOND[:1], *SECOND[2:])), *QUEUES),
        urgent_work(),
        PROMISED,
    ),
    Change(
        "a-budget-of-nobody",
        policy(conf(first=(*FIRST, "pdb")), *QUEUES, budget(1, "a")),
        policy(conf(first=(*FIRST, "pdb")), *QUEUES, budget(1, "a"), budget(1, "b")),
        urgent_work(),
        PROMISED,
    ),
    Change(
        "reclaimable-spelled-out",
        policy(RECLAIM, *shares()),
        policy(RECLAIM, *shares(12, 4, reclaimable=True), queue("spare", deserved={"cpu": 1})),
        taken_back(),
        (BACK, ALL_START),
    ),
    Change(
        "a-pod-limit-beyond-any",
        BASE,
        policy(
            PREEMPT,
            *QUEUES,
            named(
                "LimitRange",
                "most",
                namespace="default",
                spec={"limits": [{"type": "Container", "max": {"cpu": "100"}}]},
            ),
        ),
        backlog(),
        WAITS,
    ),
)
