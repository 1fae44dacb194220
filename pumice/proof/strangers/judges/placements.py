# SPDX-License-Identifier: Apache-2.0
"""Judge of placements: each pod is bound once, by its own scheduler, to a node with room for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.core.objects.metadata import Object, section
from pumice.proof.storm.invariants.truth import StormTruth
from pumice.proof.storm.invariants.upheld import CAPABILITY, POD_COUNT, PORTS
from pumice.proof.strangers.history import ApiChange, ApiHistory, Broken, Found

if TYPE_CHECKING:
    from pumice.proof.storm.invariants.pod_book import PodBook

UPHELD: Final = frozenset((PORTS, POD_COUNT, CAPABILITY))


def judge_placements(history: ApiHistory) -> Found:
    """Yield pods that were bound twice, by a scheduler that is not theirs, or where there was no room for them.

    A node that went or shrank, or a queue whose capability fell, counts as it was `lag_s` before the bind.
    """
    truth, cordoned = StormTruth(), dict[str, float]()
    for change in history.changes:
        if change.mutation.kind == "Node":
            _note_cordon(cordoned, change)
        bound = truth.apply(change.mutation)
        if bound is None:
            continue
        pod, before = bound
        revision = change.mutation.revision
        if before:
            yield Broken("one-node", f"pod {pod.key} moved from {before} to {pod.node}", revision)
        scheduler = section(truth.object_of(pod), "spec").get("schedulerName") or "default-scheduler"
        if scheduler != history.scheduler:
            yield Broken("own-pods", f"pod {pod.key} of {scheduler} was bound to {pod.node}", revision)
            continue
        for invariant, words in truth.judge(pod, history.seen_by(change.at), upheld=UPHELD):
            yield Broken(invariant, words, revision)
        if closed := _closed(truth, cordoned, pod, change, history):
            yield Broken("open-nodes", closed, revision)


def _note_cordon(cordoned: dict[str, float], change: ApiChange) -> None:
    """Note since when a node takes no pods."""
    name = change.mutation.name
    if change.mutation.type != "DELETED" and _is_cordoned(change.object):
        cordoned.setdefault(name, change.at)
    else:
        cordoned.pop(name, None)


def _is_cordoned(node: Object) -> bool:
    return bool(section(node, "spec").get("unschedulable"))


def _closed(truth: StormTruth, cordoned: dict[str, float], pod: PodBook, change: ApiChange, history: ApiHistory) -> str:
    """Return a sentence when the node had been gone or cordoned for longer than a subject may not know, else ""."""
    nodes = truth.nodes.get(pod.node)
    if nodes is None or all(each is None for each in nodes.since(history.seen_by(change.at))):
        return f"pod {pod.key} was bound to {pod.node}, which does not exist"
    if pod.node in cordoned and change.at - cordoned[pod.node] > history.lag_s:
        return f"pod {pod.key} was bound to {pod.node}, which is cordoned"
    return ""
