# SPDX-License-Identifier: Apache-2.0
"""One task of an evaluation: a policy on one draw of a workload, reduced to figures. It is all that a worker does.

A placement is one cycle over everything that is there, without an API, controllers or node agents. The view of its
workload is kept, so that the next policy on it costs a cycle and no reading.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from pumice.collecting import rarely
from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import run_cycle
from pumice.core.devices.vgpu.settings import MEMORY, NUMBER
from pumice.core.messages.decisions import Bind
from pumice.core.objects.pod import Task
from pumice.core.objects.pod_template import PodTemplate
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.core.state.view import View
from pumice.core.state.volumes import volume_rules
from pumice.plugins.loader import identities, install_plugins
from pumice.questions.evaluation.kept import content_key
from pumice.questions.evaluation.policy import installed
from pumice.questions.gate.expectations import expectation_of
from pumice.questions.gate.record import RecordedBind, RecordedJob, RecordedNode, RecordedUse, RunRecord
from pumice.questions.gate.run import RunTask, run
from pumice.storage import codec


class EvaluationTask(Struct, frozen=True):
    """A run and the measures that are asked of it. `modules`: plugins as sources by module name."""

    run: RunTask
    measures: tuple[str, ...]
    modules: dict[str, str] = field(default_factory=dict[str, str])
    placement: bool = False

    @property
    def key(self) -> str:
        """Return the key of its figures."""
        # The objects as they are: as a part of JSON they would take twice the time.
        bare = EvaluationTask(replace(self.run, objects=b""), self.measures, self.modules, self.placement)
        return content_key("evaluation", bare, files=(self.run.objects,))


class EvaluatedFigures(Struct, frozen=True):
    """Figures of one run by measure, and the processor time that it took. `cycles`: those that decided something;
    `failed`: answers that the policy's plugins failed to give; `refused`: objects that the API does not take.
    `problem`: why there are no figures, "" where there are.
    """

    figures: dict[str, float] = field(default_factory=dict[str, float])
    cpu_s: float = 0.0
    cycles: int = 0
    failed: int = 0
    refused: tuple[str, ...] = ()
    problem: str = ""


def evaluated(task: EvaluationTask) -> EvaluatedFigures:
    """Return the figures of a task. Raises ConfigError, InputError."""
    began = time.process_time()
    if dict(task.run.plugins) != identities():  # in a worker: those that the caller has installed
        install_plugins(Path(task.run.plugins_dir) if task.run.plugins_dir else None)
    with rarely(), installed(task.modules):
        record = place(task.run) if task.placement else run(task.run)
    measures = [expectation_of("", text, "==", 0) for text in task.measures]
    found = {measure.measure: measure.value(record, record.horizon_s) for measure in measures}
    spent = round(time.process_time() - began, 3)
    return EvaluatedFigures(found, spent, record.cycles, record.failed, record.refused)


# --- Placement alone

MILLI: Final = 1000
"""Pieces of a resource are counted in thousandths in the view."""


def place(task: RunTask) -> RunRecord:
    """Return the record of one cycle over a workload. Raises ConfigError."""
    view = view_of(task.objects)
    config = parse_scheduler_config(task.config, source=task.source)
    clock = CycleClock(1, task.start, task.seed)
    result = run_cycle(view.snapshot(volume_rules(config)), config, clock, Carry(), SessionOptions(wordless=True))
    keys = [f"{bind.namespace}/{bind.name}" for bind in result.binds]
    tasks = list(map(view.tasks.by_key.__getitem__, keys))
    binds = tuple(
        [
            RecordedBind(0.0, key, bind.job, task.role, bind.node)
            for key, task, bind in zip(keys, tasks, result.binds, strict=True)
        ]
    )
    return RunRecord(
        0.0,
        _jobs(view, result.binds),
        binds=binds,
        nodes={spec.name: RecordedNode(spec.labels) for spec in view.nodes.specs},
        uses=_uses(view, result.binds, tasks) if task.wanted.uses else {},
        idle=True,
        cycles=1,
        foreseen=True,
        failed=sum(each.count for each in result.failed),
    )


@lru_cache(maxsize=2)
def view_of(objects: bytes) -> View:
    """Return the view of packed objects. A snapshot copies its columns, so a cycle leaves it as it is."""
    view = View()
    for obj in codec.unpack(objects):
        view.apply("ADDED", obj)
    return view


def _jobs(view: View, binds: tuple[Bind, ...]) -> tuple[RecordedJob, ...]:
    bound = Counter(bind.job for bind in binds)
    return tuple(
        RecordedJob(
            job.key,
            job.pod_group.queue,
            pods=len(job.tasks),
            started=0.0 if bound[job.key] >= max(1, job.pod_group.min_member) else None,
        )
        for job in view.jobs.by_key.values()
        if job.spec is not None
    )


def _uses(view: View, binds: Sequence[Bind], tasks: Sequence[Task]) -> dict[str, RecordedUse]:
    """Return the held part of all resources, and the part of what is free that lies on nodes which hold some. `tasks`:
    those that are bound.
    """
    names, nodes = view.dimensions.names, view.nodes
    whole = nodes.allocatable.copy()
    held = whole * 0.0
    amounts: dict[int, list[tuple[int, float]]] = {}
    for bind, task in zip(binds, tasks, strict=True):
        template = task.template
        asked = amounts.get(template.number)
        if asked is None:
            asked = amounts[template.number] = held_by(template, names)
        row = nodes.row[bind.node]
        for dimension, amount in asked:
            held[dimension, row] += amount
    free = whole - held
    torn = (free * (held > 0)).clip(min=0)
    found = dict[str, RecordedUse]()
    for dimension, name in enumerate(names[: len(whole)]):
        total, left = float(whole[dimension].sum()), float(free[dimension].sum())
        if total:
            fragmented = float(torn[dimension].sum()) / left if left > 0 else 0.0
            found[name] = RecordedUse(float(held[dimension].sum()) / total, fragmented)
    return found


def held_by(template: PodTemplate, names: list[str]) -> list[tuple[int, float]]:
    """Return what a pod holds of each resource, by dimension: of the memory of virtual GPUs it asks so much of each."""
    asked = [(dimension, amount) for dimension, amount in template.items if dimension < len(names)]
    cards = next((amount / MILLI for dimension, amount in asked if names[dimension] == NUMBER), 1.0)
    return [(dimension, amount * cards if names[dimension] == MEMORY else amount) for dimension, amount in asked]
