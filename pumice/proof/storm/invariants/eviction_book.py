"""Evictions: each that a cycle decided has one outcome in the journal, and a pod that was evicted says so once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pumice.core.messages.decisions import Evict
from pumice.core.messages.events import Evicted, EvictRefused, EvictTimedOut
from pumice.core.objects.metadata import Object, section

if TYPE_CHECKING:
    from pumice.proof.storm.invariants.truth import StormTruth

OF_EVICTIONS: Final = (Evicted, EvictRefused, EvictTimedOut)
Ended = Evicted | EvictRefused | EvictTimedOut
SAID: Final = "DisruptionTarget"
BY_SCHEDULERS: Final = "PreemptionByScheduler"


@dataclass(slots=True)
class _Ordered:
    """An eviction that was decided in a `life` of the process; `outcome`: the kind of its outcome, "" before."""

    evict: Evict
    life: int
    outcome: str = ""


class EvictionBook:
    """By cause ("cycle/uid") what was decided and what came of it; by uid what pods say of being evicted."""

    def __init__(self) -> None:
        self._ordered: dict[str, _Ordered] = {}
        self.victims: set[str] = set()
        self._said: dict[str, str] = {}

    def decided(self, cycle: int, evict: Evict, life: int) -> None:
        """A cycle named a victim."""
        self._ordered[f"{cycle}/{evict.uid}"] = _Ordered(evict, life)
        self.victims.add(evict.uid)

    def outcome(self, outcome: Ended, truth: StormTruth) -> str:
        """What is wrong with an outcome, in words."""
        ordered, pod = self._ordered.get(outcome.cause), f"{outcome.namespace}/{outcome.name}"
        if ordered is None:
            return f"the journal has an outcome of the eviction {outcome.cause} of {pod}, which nobody decided"
        if ordered.outcome:
            return f"the journal has two outcomes of the eviction {outcome.cause} of {pod}"
        ordered.outcome = type(outcome).__name__
        there = truth.pods.get(pod)
        if isinstance(outcome, Evicted) and there is not None and there.uid == outcome.uid and not there.deleting:
            return f"pod {pod} is said to be evicted, and nobody deletes it"
        return ""

    def pod(self, obj: Object) -> str:
        """What is wrong with what a pod says of its eviction, in words."""
        at = next((each for each in section(obj, "status").get("conditions") or () if each["type"] == SAID), None)
        if at is None or at["status"] != "True" or at.get("reason") != BY_SCHEDULERS:
            return ""
        meta, said = obj["metadata"], at.get("lastTransitionTime") or ""
        key, uid = f"{meta['namespace']}/{meta['name']}", meta["uid"]
        before = self._said.setdefault(uid, said)
        if uid not in self.victims:
            return f"pod {key} says that a scheduler evicted it, and no cycle did"
        return f"pod {key} says twice that it was evicted, at {before} and {said}" if before != said else ""

    def unreported(self, life: int) -> Iterator[str]:
        """Evictions of this life of the process of which the journal does not say what became of them."""
        for cause, ordered in self._ordered.items():
            if ordered.life == life and not ordered.outcome:
                pod = f"{ordered.evict.namespace}/{ordered.evict.name}"
                yield f"nobody wrote down what became of the eviction {cause} of {pod}"
