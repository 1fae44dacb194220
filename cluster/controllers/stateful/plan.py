"""The next step of a StatefulSet: which of its pods is made or taken away now (source: Kubernetes'
`stateful_set_control`, `updateStatefulSet`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pumice.cluster.controllers.pods_of import ENDED, available_at, is_leaving, phase
from pumice.cluster.controllers.revisions import POD_HASH
from pumice.cluster.controllers.stateful.pods import first_ordinal, is_running_and_ready, ordinal_of
from pumice.core.objects.metadata import Object, section, text_map


@dataclass(slots=True)
class SetPlan:
    """`new`: numbers of pods to be made; `failed`: who have ended and come again; `condemned`: those of `remove` whose
    number is beyond the last; `wait_until`: a pod is ready, and counts from then on.
    """

    new: list[int] = field(default_factory=list[int])
    remove: list[Object] = field(default_factory=list[Object])
    failed: list[Object] = field(default_factory=list[Object])
    condemned: list[Object] = field(default_factory=list[Object])
    wait_until: float | None = None


class SetPlanner:
    """Of one set, at one time. `update`: the name of the revision that its pods are to be of."""

    def __init__(self, owner: Object, pods: Sequence[Object], update: str, now: float) -> None:
        self._owner, self._update, self._now = owner, update, now
        spec = owner["spec"]
        self._first, self._last = first_ordinal(owner), first_ordinal(owner) + spec["replicas"] - 1
        numbered = {number: pod for pod in pods if (number := ordinal_of(owner, pod)) is not None}
        self._kept = {number: pod for number, pod in numbered.items() if self._first <= number <= self._last}
        surplus = sorted((number for number in numbered if number not in self._kept), reverse=True)
        self._condemned = [numbered[number] for number in surplus]
        self._one_by_one = spec.get("podManagementPolicy") != "Parallel"
        self._plan = SetPlan()

    def plan(self) -> SetPlan:
        """One step; the next follows when the api has answered."""
        if self._fill() and self._shrink():
            self._roll()
        return self._plan

    def _fill(self) -> bool:
        """Every number has a pod that works; one after the other, unless they may come together."""
        for number in range(self._first, self._last + 1):
            pod = self._kept.get(number)
            if pod is None:
                self._plan.new.append(number)
            elif phase(pod) in ENDED:
                if not is_leaving(pod):
                    self._plan.failed.append(pod)
            elif not self._one_by_one or self._works(pod):
                continue
            if self._one_by_one:
                return False
        return True

    def _shrink(self) -> bool:
        """Those beyond the last go, the highest first, and only while all others work."""
        well = all(map(self._works, self._kept.values()))
        for pod in self._condemned:
            if is_leaving(pod):
                if self._one_by_one:
                    return False
                continue
            if self._one_by_one and not well and self._works(pod):
                return False
            self._plan.remove.append(pod)
            self._plan.condemned.append(pod)
            if self._one_by_one:
                return False
        return True

    def _roll(self) -> None:
        """From the highest down to the partition, one by one, pods become those of the newest template."""
        strategy = section(self._owner["spec"], "updateStrategy")
        if strategy.get("type") == "OnDelete":
            return
        partition = section(strategy, "rollingUpdate").get("partition") or 0
        for number in range(self._last, self._first + partition - 1, -1):
            pod = self._kept.get(number)
            if pod is None:
                return
            if text_map(pod["metadata"].get("labels")).get(POD_HASH) != self._update and not is_leaving(pod):
                self._plan.remove.append(pod)
                return
            if not self._works(pod):
                return

    def _works(self, pod: Object) -> bool:
        """Whether it has been ready for long enough."""
        if not is_running_and_ready(pod):
            return False
        at = available_at(pod, self._owner["spec"].get("minReadySeconds") or 0)
        if at is not None and at > self._now:
            soonest = self._plan.wait_until
            self._plan.wait_until = at if soonest is None else min(soonest, at)
            return False
        return True
