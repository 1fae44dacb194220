# SPDX-License-Identifier: Apache-2.0
"""`small`: the cost of a cycle with almost nothing to do: nothing changed, or one pod to place, while jobs wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from pumice.core.cycle import Carry, CycleClock, run_cycle
from pumice.core.messages.decisions import CycleResult
from pumice.core.objects.metadata import Object
from pumice.core.state.view import View
from pumice.proof.bench import cluster
from pumice.proof.bench.cycle import stock_config
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled
from pumice.questions.oneshot.between import pod_group_after

DEFAULTS: Final = Parameters()
NODES: Final = (20, 1_000, 10_000)
WAITING: Final = (0, 100, 1_000)
"""Jobs that wait to be admitted, and ask for more than the cluster has."""
CYCLES: Final = 40
"""Cycles in one sample."""
GANG: Final = 4
RUNNING_A_NODE: Final = 4


class House:
    """A cluster with running and waiting jobs."""

    def __init__(self, nodes: int, waiting: int) -> None:
        self.view, self._config, self._groups = View(), stock_config(), dict[str, Object]()
        self._first, self._cycle = cluster.jobs_of(RUNNING_A_NODE * nodes, GANG), 0
        running = cluster.running_jobs(RUNNING_A_NODE * nodes, GANG, nodes)
        for obj in (*cluster.nodes(nodes), *cluster.queues(), *running):
            self._add(obj)
        for job in range(self._first, self._first + waiting):
            group = cluster.pod_group(job, 1, "Pending")
            group["spec"]["minResources"] = {"cpu": str(64 * nodes), "memory": "1Gi"}
            self._add(group)
        while self.cycle().pod_groups:
            pass

    def _add(self, obj: Object) -> None:
        self.view.apply("ADDED", obj)
        if obj["kind"] == "PodGroup":
            self._groups[obj["metadata"]["name"]] = obj

    def cycle(self) -> CycleResult:
        """Run a cycle, and return its statuses to the view."""
        self._cycle += 1
        result = run_cycle(self.view.snapshot(kept=True), self._config, CycleClock(self._cycle, cluster.NOW), Carry())
        for written in result.pod_groups:
            if written.name in self._groups:
                group = self._groups[written.name] = pod_group_after(self._groups[written.name], written, cluster.NOW)
                self.view.apply("MODIFIED", group)
        return result

    def pod(self) -> list[Object]:
        """Return a job of one pod, and it is admitted."""
        job = self._first + WAITING[-1]
        return [cluster.pod_group(job, 1, "Inqueue"), cluster.pod(job, 0)]


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure processor seconds a cycle: `idle_N_W_s` where nothing changed, and `place_N_W_s` where one pod is placed,
    on N nodes while W jobs wait.
    """
    houses = {(nodes, waiting): House(nodes, waiting) for nodes in NODES for waiting in WAITING}
    with settled():
        for _ in range(parameters.runs):
            for (nodes, waiting), house in houses.items():
                samples.add(f"idle_{nodes}_{waiting}_s", _seconds(house.cycle), "s")
                samples.add(f"place_{nodes}_{waiting}_s", _placing(house), "s")
            advance(1)


def _seconds(cycle: Callable[[], object]) -> float:
    started = time.process_time()
    for _ in range(CYCLES):
        cycle()
    return (time.process_time() - started) / CYCLES


def _placing(house: House) -> float:
    """Return the seconds of a cycle that places one pod, the pod's coming and going left out."""
    pod, spent = house.pod(), 0.0
    for _ in range(CYCLES):
        for obj in pod:
            house.view.apply("ADDED", obj)
        started = time.process_time()
        bound = len(house.cycle().binds)
        spent += time.process_time() - started
        for obj in pod:
            house.view.apply("DELETED", obj)
        if bound != 1:
            raise AssertionError(f"one pod waits, and {bound} were bound")
    return spent / CYCLES
