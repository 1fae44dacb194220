# SPDX-License-Identifier: Apache-2.0
"""The status of PodDisruptionBudgets, kept up to date with their pods (Kubernetes' disruption controller).

Evictions ask what the status allows. Of pods only what counts is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pumice.cluster.api.kinds import KINDS
from pumice.cluster.kube.budgets import STALE_S, Scale, budget_status, covers, is_ready, selector_of
from pumice.cluster.kube.merge_patch import diff_patch
from pumice.cluster.machine import Machine
from pumice.core.kube.selectors import LabelSelector
from pumice.core.messages.commands import ApiRequest, UpdateStatus
from pumice.core.objects.metadata import Object, controlling_owner, parse_time, section
from pumice.storage.codec import pack

Name = tuple[str, str]

BUDGET: Final = "PodDisruptionBudget"
SCALED: Final = tuple(key for key, kind in KINDS.items() if kind.makes and kind.scale)
"""Kinds whose scale says how many pods a budget expects."""
USER: Final = "disruption-controller"
MOST_CHECKS: Final = 10_000
"""Labels of pods that are held against requirements of selectors in one step: a new budget may be about every pod."""
_READY: Final = {"conditions": [{"type": "Ready", "status": "True"}]}


class DisruptionMachine(Machine):
    """Keeps the status of PodDisruptionBudgets up to date with their pods."""

    kinds = (BUDGET, *SCALED, "Pod")

    def __init__(self) -> None:
        self._budgets: dict[Name, Object] = {}
        self._pods: dict[str, dict[str, Object]] = {}
        self._scales: dict[str, tuple[int, str]] = {}
        self._covers: dict[Name, LabelSelector] = {}
        self._covered: dict[Name, dict[str, None]] = {}  # names of the pods, as far as they have been looked at
        self._unseen: dict[Name, list[str]] = {}  # pods that a new selector has not been held against
        self._stale: dict[Name, None] = {}
        self._asked: dict[Name, str] = {}

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        name = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        if kind == BUDGET:
            self._stale[name] = None
            if deleted:
                self._budgets.pop(name, None)
                for known in (self._asked, self._covers, self._covered, self._unseen):
                    known.pop(name, None)
            else:
                self._budgets[name] = obj
                self._cover(name, obj)
        elif kind == "Pod":
            self._pod(name, obj, deleted=deleted)
        else:
            self._scale(obj, deleted=deleted)

    def _cover(self, name: Name, budget: Object) -> None:
        """Check every pod again when the budget's selector has changed."""
        selector = selector_of(budget)
        if self._covers.get(name) != selector:
            self._covers[name] = selector
            self._covered[name] = {}
            self._unseen[name] = list(self._pods.get(name[0], ()))

    def _pod(self, name: Name, pod: Object, *, deleted: bool) -> None:
        namespace, own = name
        held = self._pods.setdefault(namespace, {})
        before = held.pop(own, None)
        after = None if deleted else _counted(pod)
        if after is not None:
            held[own] = after
        if before != after:
            for budget, selector in self._covers.items():
                if budget[0] == namespace:
                    self._recover(budget, selector, own, after)

    def _recover(self, budget: Name, selector: LabelSelector, pod: str, after: Object | None) -> None:
        """Note a changed pod."""
        covered = self._covered[budget]
        if pod in covered:
            self._stale[budget] = None
            del covered[pod]
        if after is not None and covers(selector, after):
            self._stale[budget] = None
            covered[pod] = None

    def _scale(self, controller: Object, *, deleted: bool) -> None:
        meta = controller["metadata"]
        uid: str = meta.get("uid", "")
        replicas: Any = section(controller, "spec").get("replicas")
        owner = controlling_owner(controller)
        after = None if deleted else (replicas if isinstance(replicas, int) else 1, owner["uid"] if owner else "")
        before = self._scales.pop(uid, None)
        if after is not None:
            self._scales[uid] = after
        if before != after:
            self._stale |= {name: None for name in self._budgets if name[0] == meta.get("namespace", "")}

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        self._look()
        # a budget whose selector is still being held against pods would be counted too low
        stale = {*self._stale, *self._overdue(now)} - self._unseen.keys()
        self._stale = {name: None for name in self._stale if name in self._unseen}
        requests: list[ApiRequest] = []
        for name in sorted(stale):
            budget = self._budgets.get(name)
            if budget is None:
                continue
            held = self._pods.get(name[0], {})
            covered = self._covered[name]
            pods = [pod for own, pod in held.items() if own in covered]
            before = section(budget, "status")
            patch = diff_patch(before, budget_status(budget, pods, self._scale_of, now))
            if patch:
                revision = self._asked[name] = budget["metadata"]["resourceVersion"]
                requests.append(UpdateStatus(BUDGET, *name, pack(patch), revision, USER))
        return requests

    def _look(self) -> None:
        """Match new selectors against pods, some at a time."""
        left = MOST_CHECKS
        while self._unseen and left > 0:
            name, pods = next(iter(self._unseen.items()))
            selector, covered, held = self._covers[name], self._covered[name], self._pods.get(name[0], {})
            cost = 1 + len(selector.requirements)
            for _ in range(min(len(pods), left // cost + 1)):
                pod = pods.pop()
                left -= cost
                if pod in held and covers(selector, held[pod]):
                    covered[pod] = None
            if not pods:
                del self._unseen[name]

    def next_due(self) -> float | None:
        """Return when the next granted eviction expires; now while pods are still to be matched."""
        if self._unseen:
            return 0.0
        return min((at for _, at in self._granted()), default=None)

    def _overdue(self, now: float) -> Iterator[Name]:
        return (name for name, at in self._granted() if at <= now)

    def _granted(self) -> Iterator[tuple[Name, float]]:
        """Yield budgets with granted evictions whose pods still exist, and when these no longer count."""
        for name, budget in self._budgets.items():
            if self._asked.get(name) == budget["metadata"]["resourceVersion"]:
                continue  # what follows from this version has been asked for already
            for at in section(section(budget, "status"), "disruptedPods").values():
                yield name, _seconds(at) + STALE_S + 1

    def _scale_of(self, pod: Object) -> Scale | None:
        """Return the scale of a controller; a ReplicaSet counts with its Deployment."""
        owner = controlling_owner(pod)
        found = None if owner is None else self._scales.get(owner["uid"])
        if owner is None or found is None:
            return None
        above = self._scales.get(found[1])
        return Scale(owner["uid"], found[0]) if above is None else Scale(found[1], above[0])


def _counted(pod: Object) -> Object:
    """Return the parts of a pod that count, in the pod's own form."""
    meta = pod["metadata"]
    # small copies: all pods of the cluster are remembered here
    kept = {part: meta[part] for part in ("name", "labels", "deletionTimestamp") if part in meta}
    kept["ownerReferences"] = [
        {"uid": each["uid"], "controller": True} for each in meta.get("ownerReferences") or () if each.get("controller")
    ]
    return {"metadata": kept, "status": _READY if is_ready(pod) else {}}


def _seconds(text: object) -> float:
    try:
        return parse_time(text if isinstance(text, str) else None)
    except ValueError:
        return 0.0
