"""Policies and workloads of which the changes are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from pumice.core.objects.metadata import Object
from pumice.lab.builders import gang, nodes, priority_class, queue

Plugin = str | dict[str, Any]
Files = Mapping[str, str]
GANG: Plugin = {"name": "gang", "enablePreemptable": False}
FIRST: tuple[Plugin, ...] = ("priority", GANG, "conformance")
SECOND: tuple[Plugin, ...] = ("predicates", "proportion", "nodeorder")
CAPACITY: tuple[Plugin, ...] = ("predicates", "capacity", "nodeorder")
Expected = tuple[str, str, str | float]


@dataclass(frozen=True)
class Change:
    """A change of a policy: files of both folders, a workload, and what was expected before it was tried."""

    name: str
    base: Files
    head: Files
    workload: Sequence[Object]
    expect: Sequence[Expected]
    until_s: float | None = None
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])


def conf(
    actions: str = "allocate, preempt, backfill",
    *,
    first: Sequence[Plugin] = FIRST,
    second: Sequence[Plugin] = SECOND,
    period: str = "",
) -> str:
    tiers = [
        {"plugins": [{"name": each} if isinstance(each, str) else each for each in tier]} for tier in (first, second)
    ]
    written: dict[str, Any] = {"actions": actions, "tiers": tiers}
    if period:
        written["configurations"] = [{"name": "pumice", "arguments": {"schedulePeriod": period}}]
    return yaml.safe_dump(written)


def policy(config: str, *objects: Object) -> dict[str, str]:
    return {"scheduler.conf": config, "objects.yaml": yaml.safe_dump_all(objects)}


def named(kind: str, name: str, api: str = "v1", *, namespace: str = "", **more: Any) -> Object:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api, "kind": kind, "metadata": meta, **more}


def quota(cpu: int) -> Object:
    return named("ResourceQuota", "team", namespace="default", spec={"hard": {"requests.cpu": str(cpu)}})


def budget(least: int, app: str) -> Object:
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": app}}}
    return named("PodDisruptionBudget", app, "policy/v1", namespace="default", spec=spec)


def stated_node(name: str, labels: Mapping[str, str] | None = None, taint: str = "") -> Object:
    taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
    made = named("Node", name, spec={"taints": taints})
    made["metadata"]["labels"] = dict(labels or {})
    return made


def switch(name: str, tier: int, *members: str, kind: str = "Node") -> Object:
    chosen = [{"type": kind, "selector": {"exactMatch": {"name": each}}} for each in members]
    return named("HyperNode", name, "topology.volcano.sh/v1alpha1", spec={"tier": tier, "members": chosen})


def with_pods(job: Object, **spec: Any) -> Object:
    """Return a job whose pods have more in their spec."""
    for task in job["spec"]["tasks"]:
        task["template"]["spec"].update(spec)
    return job


def with_labels(job: Object, **labels: str) -> Object:
    """Return a job whose pods have labels."""
    for task in job["spec"]["tasks"]:
        task["template"]["metadata"]["labels"] = labels
    return job


LOW, HIGH = priority_class("low", 10), priority_class("high", 1000)
CLASSES = (LOW, HIGH)
PROD, BATCH = queue("prod", weight=4), queue("batch", weight=1)


def urgent_work(name: str = "high", low: str = "low") -> list[Object]:
    """Four nodes that low jobs keep full, and three urgent ones."""
    found = nodes(4, cpu=8)
    for number in range(16):
        found.append(gang(f"low-{number}", 4, cpu=2, duration="4m", priority=low, arrival=f"{number * 25 + 1}s"))
    for number in range(3):
        found.append(gang(f"urgent-{number}", 2, cpu=2, duration="1m", priority=name, arrival=f"{number * 130 + 150}s"))
    return found


URGENT: Expected = ("wait.max[name=urgent-*]", "<=", "10s")


def taken_back() -> list[Object]:
    """Two nodes that batch fills, and prod's jobs that come later."""
    found = nodes(2, cpu=8)
    for number in range(8):
        found.append(gang(f"b-{number}", 1, cpu=2, duration="20m", queue="batch", arrival=f"{number + 1}s"))
    for number in range(3):
        found.append(gang(f"p-{number}", 1, cpu=2, duration="5m", queue="prod", arrival=f"{number * 20 + 120}s"))
    return found


def shares(prod: int = 12, batch: int = 4, *, reclaimable: bool = True) -> tuple[Object, Object]:
    return (
        queue("prod", deserved={"cpu": prod}),
        queue("batch", deserved={"cpu": batch}, reclaimable=reclaimable),
    )


RECLAIM = conf("allocate, reclaim, backfill", second=CAPACITY)
BACK: Expected = ("wait.max[queue=prod]", "<=", "10s")


def backlog(prod: str = "prod", batch: str = "batch") -> list[Object]:
    """Jobs of two queues and two classes, more than two nodes can run at the same time."""
    found = nodes(2, cpu=8)
    for number in range(40):
        name, level = (prod, "high") if number % 2 else (batch, "low")
        arrival = f"{number * 3 + 1}s"
        found.append(gang(f"j-{number}", 1, cpu=2, duration="90s", queue=name, priority=level, arrival=arrival))
    return found


NO_WORSE: Expected = ("wait.mean[queue=prod]", "<=", "base + 15%")
ALL_START: Expected = ("unstarted", "==", 0)
