# SPDX-License-Identifier: Apache-2.0
"""Cycles over a cluster in which all that is decided happens immediately: bound pods run, evicted pods are gone."""

from __future__ import annotations

import time
from collections.abc import Iterable

from pumice.config.schema import SchedulerConfig
from pumice.core.cycle import Carry, CycleClock, run_cycle
from pumice.core.messages.decisions import CycleResult
from pumice.core.objects.metadata import Object
from pumice.core.state.view import View
from pumice.proof.bench import cluster
from pumice.questions.oneshot.between import pod_group_after

Key = tuple[str, str]
"""Kind and name."""


class Rounds:
    """A view and its objects. `cpu_s`: processor seconds of the cycles, with what the view takes in between them."""

    def __init__(self, config: SchedulerConfig, objects: Iterable[Object]) -> None:
        self.view, self.cpu_s, self.cycles, self.evicted, self.bound = View(), 0.0, 0, 0, 0
        self._config, self._objects = config, dict[Key, Object]()
        self.add(objects)

    def add(self, objects: Iterable[Object]) -> None:
        """Let objects come."""
        for obj in objects:
            self._objects[obj["kind"], obj["metadata"]["name"]] = obj
            self.view.apply("ADDED", obj)

    def remove(self, key: Key) -> None:
        """Let an object go."""
        self.view.apply("DELETED", self._objects.pop(key))

    def cycle(self, now: float = cluster.NOW) -> CycleResult:
        """Run a cycle, and let happen what it decided."""
        began = time.process_time()
        self.cycles += 1
        result = run_cycle(self.view.snapshot(), self._config, CycleClock(self.cycles, now), Carry())
        for bind in result.binds:
            pod = self._objects["Pod", bind.name]
            spec, status = {**pod["spec"], "nodeName": bind.node}, {**pod["status"], "phase": "Running"}
            self._change({**pod, "spec": spec, "status": status})
        for evict in result.evicts:
            self.remove(("Pod", evict.name))
        for written in result.pod_groups:
            if group := self._objects.get(("PodGroup", written.name)):
                self._change(pod_group_after(group, written, now))
        self.bound, self.evicted = self.bound + len(result.binds), self.evicted + len(result.evicts)
        self.cpu_s += time.process_time() - began
        return result

    def _change(self, obj: Object) -> None:
        self._objects[obj["kind"], obj["metadata"]["name"]] = obj
        self.view.apply("MODIFIED", obj)

    def until_bound(self, pods: int, most_cycles: int) -> None:
        """Run cycles until so many pods were bound. Raises RuntimeError when that takes more cycles."""
        for _ in range(most_cycles):
            self.cycle()
            if self.bound >= pods:
                return
        raise RuntimeError(f"{self.bound} of {pods} pods were bound in {most_cycles} cycles")
