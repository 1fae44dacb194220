# SPDX-License-Identifier: Apache-2.0
"""Evictions from nodes with NoExecute taints, for all pods (source: Kubernetes' `tainteviction` controller).

A pod that does not tolerate all of them goes immediately; one with a `tolerationSeconds` in its tolerations goes when
the shortest of these has passed since the taint was noticed. A taint that is taken away in time takes the
eviction back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pumice.cluster.timers import Timers
from pumice.core.kube.taints import tolerates
from pumice.core.messages.commands import EvictPod, StatusCondition
from pumice.core.objects.metadata import Object, section

PodKey = tuple[str, str]

NO_EXECUTE: Final = "NoExecute"
FOR_EVER: Final = float("inf")
WHY: Final = StatusCondition(
    "DisruptionTarget", "True", "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
)


class TaintEvictions:
    """The nodes with such taints, and the times when their pods have to go."""

    def __init__(self) -> None:
        self._taints: dict[str, list[Object]] = {}
        self._since: dict[PodKey, float] = {}
        self._timers: Timers[PodKey] = Timers()

    def node(self, node: Object, *, deleted: bool) -> bool:
        """Note the present taints of a node, and return whether they have changed."""
        name = node["metadata"]["name"]
        taints = [] if deleted else taints_of(node)
        if taints == self._taints.get(name, []):
            return False
        if taints:
            self._taints[name] = taints
        else:
            self._taints.pop(name, None)
        return True

    def concerns(self, node: str) -> bool:
        """Return whether pods of the node may have to go."""
        return node in self._taints

    def look_at(self, key: PodKey, node: str, tolerations: Sequence[Object], now: float) -> None:
        """Set, move or take back the eviction of a pod that is not being deleted."""
        lasts_s = tolerated_s(self._taints.get(node, ()), tolerations)
        if lasts_s == FOR_EVER:
            self.forget(key)
            return
        # from the first sight of any taint: another taint does not begin the time anew
        since = self._since.setdefault(key, now)
        self._timers.set(key, since + lasts_s)

    def forget(self, key: PodKey) -> None:
        """Forget a pod that is leaving, or may stay."""
        self._since.pop(key, None)
        self._timers.cancel(key)

    def take_due(self, now: float) -> list[PodKey]:
        """Return the pods that are due."""
        due = list(self._timers.take_due(now))
        for key in due:
            self._since.pop(key, None)
        return due

    def next_due(self) -> float | None:
        """Return when the next pod has to go; None for never."""
        return self._timers.next_due()

    def __len__(self) -> int:
        return len(self._timers)


def taints_of(node: Object) -> list[Object]:
    """Return the taints of a node that evict, without their times."""
    taints: list[Object] = section(node, "spec").get("taints") or []
    return [
        # without `timeAdded`: a taint that is set again is the same one
        {"key": each.get("key"), "value": each.get("value"), "effect": NO_EXECUTE}
        for each in taints
        if each.get("effect") == NO_EXECUTE
    ]


def tolerated_s(taints: Iterable[Object], tolerations: Sequence[Object]) -> float:
    """Return for how many seconds a pod may stay with these taints; infinity for ever."""
    lasts_s = FOR_EVER
    for taint in taints:
        used = [each for each in tolerations if tolerates(each, taint)]
        # one taint that is not tolerated is enough
        if not used:
            return 0.0
        # the shortest time counts, as in the taint manager's `getMinTolerationTime`
        given = [float(each["tolerationSeconds"]) for each in used if each.get("tolerationSeconds") is not None]
        lasts_s = min([lasts_s, *(max(seconds, 0.0) for seconds in given)])
    return lasts_s


def eviction(namespace: str, name: str, uid: str) -> EvictPod:
    """Return the request that evicts a pod from its node."""
    return EvictPod(namespace, name, uid, (WHY,))
