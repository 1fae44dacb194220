# SPDX-License-Identifier: Apache-2.0
"""Judge of evictions and nominations: budgets have their pods, and no pod waits for room that will never be there."""

from __future__ import annotations

from typing import Final

from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import section
from pumice.proof.storm.invariants.budget_books import BudgetBooks
from pumice.proof.storm.invariants.pod_book import PodBook
from pumice.proof.storm.invariants.truth import StormTruth
from pumice.proof.strangers.history import ApiChange, ApiHistory, Broken, Found
from pumice.proof.strangers.judges.room import JudgedRoom, placed_on

DRIVER: Final = "~pumice-stress"
"""User-Agent of the stress command: no client of anybody else has such a name."""
OWN: Final = frozenset(
    (
        DRIVER,
        "submit",
        "node-agents",
        "node-lifecycle",
        "job-controller",
        "workload-controller",
        "pod-group-controller",
        "namespace-contents",
    )
)
"""The stress command, and parts of the served cluster that remove pods."""


def evicted_by(mutation: Mutation) -> str:
    """Return the client that had this pod removed, where that is a stranger; "" otherwise."""
    return "" if mutation.user in OWN else mutation.user


def judge_evictions(history: ApiHistory) -> Found:
    """Yield evictions that a budget did not allow, and pods of other schedulers that a stranger removed: a request can
    name the uid of the pod that it means.
    """
    truth, at = StormTruth(), 0.0
    budgets = BudgetBooks(truth.blobs, lambda: at, truth.read)
    for change in history.changes:
        at, mutation = change.at, change.mutation
        before = truth.pods.get(f"{mutation.namespace}/{mutation.name}") if mutation.kind == "Pod" else None
        scheduler = _scheduler_of(truth, before) if before is not None and not before.leaves else history.scheduler
        truth.apply(mutation)
        for words in budgets.see(mutation):
            yield Broken("within-budget", words, mutation.revision)
        if scheduler != history.scheduler and evicted_by(mutation) and _is_going(change):
            words = f"pod {mutation.namespace}/{mutation.name} of {scheduler} was removed by {mutation.user}"
            yield Broken("own-pods", words, mutation.revision)


def _scheduler_of(truth: StormTruth, pod: PodBook) -> str:
    return str(section(truth.object_of(pod), "spec").get("schedulerName") or "default-scheduler")


def _is_going(change: ApiChange) -> bool:
    return change.mutation.type == "DELETED" or "deletionTimestamp" in change.object["metadata"]


def judge_nominations(history: ApiHistory) -> Found:
    """Yield pods that wait, when all is quiet, for a node that does not exist, or that has no room for them while no
    pod leaves it: a nomination is kept or given up.
    """
    truth = StormTruth()
    for change in history.changes:
        truth.apply(change.mutation)
    nodes = {node["metadata"]["name"]: node for node in truth.all_of("Node")}
    for pod in truth.pods.values() if history.quiet else ():
        node = section(truth.object_of(pod), "status").get("nominatedNodeName")
        if not node or pod.node or pod.leaves:
            continue
        if node not in nodes:
            words = f"pod {pod.key} is nominated to {node}, which does not exist"
            yield Broken("nominations", words, truth.revision)
        elif not JudgedRoom(truth, nodes[node]).has(pod) and not any(each.leaves for each in placed_on(truth, node)):
            words = f"pod {pod.key} is nominated to {node}, which has no room for it, and no pod leaves {node}"
            yield Broken("nominations", words, truth.revision)
