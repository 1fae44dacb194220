# SPDX-License-Identifier: Apache-2.0
"""A first policy file states what a cluster's present policy achieves on a workload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

from pumice.core.objects.metadata import Object
from pumice.questions.gate.cases import written_out
from pumice.questions.gate.expectations import Expectation, expectation_of
from pumice.questions.gate.gate import base_task
from pumice.questions.gate.judging import WAITED_S
from pumice.questions.gate.policy import GatePolicy, Noise, Workload
from pumice.questions.gate.record import RunRecord
from pumice.questions.gate.runner import Runner
from pumice.questions.gate.sides import PolicySides, Side
from pumice.questions.gate.workloads import Trial
from pumice.yaml_text import dump_yaml

DRAWS: Final = 6
"""Number of draws that show the variation of a measure without any change."""
MOST_QUEUES: Final = 3
"""Number of queues with an expectation, those with the most jobs that waited."""
MOST_CLASSES: Final = 2
"""Number of priority classes with an expectation, the highest: the mean of a queue hides a few urgent jobs."""
CLASS: Final = "PriorityClass"
HEADER: Final = """\
# The first policy of this cluster: what its present policy keeps to over {draws} draws of the workload (arrivals moved
# by up to {arrivals}), and as much more as the draws differ. Change what your teams were promised, and try
# `pumice gate FILE --mutate`: it names the bad changes that nothing here would notice.
"""


def first_policy(inputs: Sequence[str], folder: str, side: Side, trial: Trial, runner: Runner) -> tuple[str, list[str]]:
    """Return the text of a policy file, and the choices with their reasons, a line each."""
    noise = Noise(draws=DRAWS)
    policy = GatePolicy(noise=noise)
    sides = PolicySides(side, side)
    records = runner.records([base_task(trial, sides, policy, draw) for draw in range(DRAWS)])
    chosen = list(_chosen(records, side))
    content: Object = {
        "policy": folder,
        "workloads": [_written(trial.workload, inputs)],
        "expect": [written_out(each) for each, _ in chosen],
        "noise": {"draws": 1, "arrivals": noise.arrivals},
    }
    text = HEADER.format(draws=DRAWS, arrivals=noise.arrivals) + dump_yaml(content)
    return text, [f"{each.text}: {why}" for each, why in chosen]


def _written(workload: Workload, inputs: Sequence[str]) -> Object:
    written: Object = {"name": workload.name, "input": list(inputs)}
    if workload.until_s is not None:
        written["until"] = f"{workload.until_s:g}s"
    if workload.start:
        written["start"] = workload.start
    return written


def _chosen(records: Sequence[RunRecord], side: Side) -> Iterator[tuple[Expectation, str]]:
    queues = _waiting(records[0])
    for name in _classes(records[0], side):
        yield _bounded(records, f"wait.mean[class={name}]", f"the mean wait of class {name}", "s", 1.0)
    for name in queues:
        yield _bounded(records, f"wait.mean[queue={name}]", f"the mean wait of queue {name}", "s", 1.0)
    yield _bounded(records, "unstarted", "jobs that never start", "", 0.0)
    yield _bounded(records, "evictions", "evictions", "", 1.0)
    yield _bounded(records, "lostcpu", "work lost to evictions", "", 1.0)


def _waiting(record: RunRecord) -> list[str]:
    """Return the queues with the most jobs that waited."""
    queues = dict[str, int]()
    for job in record.jobs:
        queues[job.queue] = queues.get(job.queue, 0) + (job.wait_s(record.horizon_s) > WAITED_S)
    waited = sorted((name for name, count in queues.items() if count), key=lambda name: (-queues[name], name))
    return waited[:MOST_QUEUES]


def _classes(record: RunRecord, side: Side) -> list[str]:
    """Return the highest classes of jobs that waited or preempted, where there is more than one class."""
    values = {obj["metadata"].get("name"): obj.get("value") or 0 for obj in side.objects if obj["kind"] == CLASS}
    used = {job.priority_class for job in record.jobs if job.priority_class in values}
    evicting = {each.by for each in record.evictions}
    moved = {
        job.priority_class for job in record.jobs if job.job in evicting or job.wait_s(record.horizon_s) > WAITED_S
    }
    ranked = sorted(used & moved, key=lambda name: (-int(values[name]), name))
    return ranked[:MOST_CLASSES] if len(used) > 1 else []


def _bounded(records: Sequence[RunRecord], measure: str, what: str, unit: str, least: float) -> tuple[Expectation, str]:
    """Return an upper bound for a measure: as far beyond the worst draw as the draws differ, and `least` at least."""
    asked = expectation_of("", measure, "<=", 0.0)
    values = [asked.value(record, record.horizon_s) for record in records]
    worst = max(values)
    limit = ceil(worst + max(worst - min(values), least)) if worst else 0
    found = expectation_of(f"{what}: at most {limit} {unit}".rstrip(), measure, "<=", f"{limit}{unit}")
    return found, f"{min(values):g} to {max(values):g} over {len(records)} draws"
