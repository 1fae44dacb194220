# SPDX-License-Identifier: Apache-2.0
"""`gate`: a day of a cluster under two policies, as `pumice gate` lives through it: jobs come for 24 hours at some 80 %
load, urgent ones evict usual ones, and head keeps gangs from being evicted.
"""

from __future__ import annotations

import time
from typing import Final

from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import Object
from pumice.lab import builders
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled
from pumice.questions.gate.expectations import expectation_of
from pumice.questions.gate.gate import base_task, head_task
from pumice.questions.gate.judging import Pair
from pumice.questions.gate.policy import GatePolicy, GeneratedJobs, Workload
from pumice.questions.gate.record import RunRecord
from pumice.questions.gate.run import RunTask, run
from pumice.questions.gate.sides import PolicySides, Side
from pumice.questions.gate.workloads import Trial, generated

DEFAULTS: Final = Parameters(nodes=200, pods=18_600, runs=1)
PODS: Final = (1, 2, 4, 8, 16)
DAY: Final = "24h"
DAY_S: Final = 86_400.0
CONFIG: Final = """\
actions: "allocate, preempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: {preemptable}
  - name: conformance
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
EXPECTED: Final = (
    expectation_of("", "wait.mean[class=urgent]", "<=", "30s"),
    expectation_of("", "wait.mean[queue=batch]", "<=", "base + 10%"),
)


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure `base_s` and `head_s`, processor seconds of either side in one process, and how many `jobs` and
    `evictions` base has. Raises AssertionError when two runs of a side differ.
    """
    policies, trial, policy = sides(), day(parameters), GatePolicy()
    found = list[Pair]()
    for _ in range(parameters.runs):
        base = _timed("base_s", samples, base_task(trial, policies, policy))
        head = _timed("head_s", samples, head_task(trial, policies, policy, base))
        samples.add("jobs", len(base.jobs), "jobs")
        samples.add("evictions", len(base.evictions), "pods")
        found.append(Pair(base, head))
        advance(1)
    assert all(pair == found[0] for pair in found), "every run is the same"


def _timed(name: str, samples: Samples, task: RunTask) -> RunRecord:
    with settled():
        began = time.process_time()
        record = run(task)
        samples.add(name, time.process_time() - began, "s")
    return record


def sides() -> PolicySides:
    """Return both policies."""
    objects: tuple[Object, ...] = (
        builders.queue("prod", weight=4),
        builders.queue("batch", weight=1),
        builders.priority_class("urgent", 1000),
        builders.priority_class("usual", 10),
    )
    texts = {"base": CONFIG.format(preemptable="false"), "head": CONFIG.format(preemptable="true")}
    base, head = (
        Side(name, text, name, parse_scheduler_config(text, source=name), objects) for name, text in texts.items()
    )
    return PolicySides(base, head)


def day(parameters: Parameters) -> Trial:
    """Return a day with as many jobs as have that number of pods together, about."""
    asked = GeneratedJobs(
        jobs=max(1, parameters.pods * len(PODS) // sum(PODS)),
        over=DAY,
        nodes=parameters.nodes,
        node_cpu=32,
        node_memory="128Gi",
        pods=[*PODS],
        cpu=[2.0, 4.0, 8.0],
        duration=["10m", "30m", "1h", "2h", "3h"],
        queues=["batch", "batch", "prod"],
        classes=["usual", "usual", "usual", "urgent"],
    )
    workload = Workload("a day", (), generate=asked, until_s=DAY_S)
    return Trial(workload, list(generated(asked)), EXPECTED)
