"""Nominations: a pod's name of a node on which room was made for it, or is being made.

Each is kept while the victims leave, then used or given up: a cycle that has seen them gone binds the pod, makes room
anew, or leaves it waiting for a reason that it writes. Kubernetes' own scheduler takes the name away then, Volcano
leaves it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from pumice.core.default_scheduler.profile import NAME as DEFAULT_SCHEDULER
from pumice.core.objects.metadata import section

if TYPE_CHECKING:
    from pumice.core.messages.decisions import PodCondition
    from pumice.proof.storm.invariants.truth import StormTruth

MOST: Final = 3


class NominationBook:
    """What the newest cycle of each scheduler had seen."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def cycle(self, scheduler: str, revision: int) -> None:
        """A cycle of a scheduler ("" for Volcano's) was decided on what that revision said."""
        self._seen[scheduler] = max(revision, self._seen.get(scheduler, 0))

    def unfounded(self, said: Iterable[PodCondition], truth: StormTruth, revision: int) -> Iterator[str]:
        """Pods that a cycle which saw `revision` nominates to nodes that it cannot have seen.

        Nobody need have been evicted there: Volcano also tells where it would have made room, had the rest of the gang
        found a place, and Kubernetes' own scheduler waits for those who leave anyway.
        """
        for each in said:
            history = truth.nodes.get(each.nominated) if each.nominated else None
            if each.nominated and (history is None or not any(room is not None for room in history.since(revision))):
                yield f"pod {each.namespace}/{each.name} is nominated to {each.nominated}, which does not exist"

    def left_over(self, truth: StormTruth) -> Iterator[str]:
        """Nominations at rest, when all victims have gone, that were neither used nor given up."""
        for pod in truth.pods.values():
            if pod.node or pod.ended or pod.deleting:
                continue
            obj = truth.object_of(pod)
            node = section(obj, "status").get("nominatedNodeName")
            if not node:
                continue
            if obj["spec"].get("schedulerName") == DEFAULT_SCHEDULER:
                yield f"pod {pod.key} is nominated to {node} for ever: nobody leaves it for the pod any more"
            elif self._seen.get("", 0) < truth.left_at.get(node, 0):
                yield f"pod {pod.key} is nominated to {node}, and no cycle looked since its victims left"
