# SPDX-License-Identifier: Apache-2.0
"""Containers that are added to a running pod: they start immediately, do what their command says, and stay ended.

What does not say what it does runs for as long as its pod. The pod itself does not care.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.kube.commands.containers import plan_of
from pumice.cluster.kube.commands.plans import FOR_EVER, Plan
from pumice.cluster.kubelets.container_life import NEVER, AskedContainer, ContainerRun, PodContainers
from pumice.cluster.kubelets.container_plans import run_of
from pumice.cluster.kubelets.node_reports import OtherAgents
from pumice.cluster.kubelets.statuses import added_status
from pumice.cluster.machine import Machine
from pumice.cluster.timers import Timers
from pumice.core.messages.commands import ApiRequest, UpdateStatus
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.parts import POD_PLACED
from pumice.storage.codec import repack

PodKey = tuple[str, str, str]
"""Namespace, name, uid."""

USER: Final = "node-agents"


class AddedContainersMachine(Machine):
    """Starts and ends containers that are added to running pods. `others` manage nodes of their own."""

    kinds = (POD_PLACED,)

    def __init__(self, others: OtherAgents) -> None:
        self._others = others
        self._lives: dict[PodKey, PodContainers] = {}
        self._fresh: dict[PodKey, None] = {}
        self._timers: Timers[PodKey] = Timers()

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        spec, meta = section(obj, "spec"), obj["metadata"]
        added: list[Object] = spec.get("ephemeralContainers") or []
        if not added:
            return
        key = (meta["namespace"], meta["name"], meta["uid"])
        runs = not deleted and section(obj, "status").get("phase") == "Running"
        if not runs or self._others.keeps(str(spec.get("nodeName"))):
            self._lives.pop(key, None)
            self._timers.cancel(key)
            return
        known = self._lives.get(key)
        if known is None or len(known.containers) != len(added):
            self._lives[key] = _life(obj, added, known)
            self._fresh[key] = None

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        fresh, self._fresh = self._fresh, {}
        due = [key for key in {**fresh, **dict.fromkeys(self._timers.take_due(now))} if key in self._lives]
        return [self._advance(key, self._lives[key], now) for key in due]

    def _advance(self, key: PodKey, life: PodContainers, now: float) -> ApiRequest:
        life.advance(now)
        if (next_due := life.next_due()) != FOR_EVER:
            self._timers.set(key, next_due)
        told = [added_status(container, run) for container, run in life.both()]
        return UpdateStatus("Pod", key[0], key[1], repack({"ephemeralContainerStatuses": told}), user=USER)

    def next_due(self) -> float | None:
        """Return the time when `step` has work without any change; None for never."""
        return self._timers.next_due()


def _life(pod: Object, added: list[Object], known: PodContainers | None) -> PodContainers:
    """Return the state of known containers, and the status of others."""
    said = {each.get("name"): each for each in section(pod, "status").get("ephemeralContainerStatuses") or ()}
    before: dict[str, ContainerRun] = {each.name: run for each, run in known.both()} if known else {}
    asked = [
        AskedContainer(str(each.get("name")), str(each.get("image") or ""), plan_of(pod, each) or Plan(FOR_EVER), NEVER)
        for each in added
    ]
    runs = [before.get(each.name) or run_of(said.get(each.name) or {}) for each in asked]
    return PodContainers(tuple(asked), runs)
