# SPDX-License-Identifier: Apache-2.0
"""`asking`: the cost of asking which jobs wait and why, on a full cluster where gangs wait that fit nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from pumice.core.objects.metadata import Object
from pumice.core.session.carry import Carry, CycleClock
from pumice.proof.bench import cluster
from pumice.proof.bench.cycle import stock_config
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled
from pumice.proof.bench.steady import fill
from pumice.questions.adviser.waiting_jobs import waiting_jobs_of
from pumice.questions.explain.account import account_of
from pumice.questions.explain.scene import Scene

DEFAULTS: Final = Parameters(nodes=10_000, running=80_000, pods=20_000, gang=8)
ASKED: Final = ("24", "28", "64")
"""cpu of each pod that waits, in turn: more than is free on any node, or than any node has."""


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure `queue_s` (all queues and waiting jobs as JSON) and `explain_s` (one job, without advice).

    The cluster is loaded before. Raises AssertionError when the same question gets another answer.
    """
    view = fill(parameters, samples)
    first = cluster.jobs_of(parameters.running, parameters.gang)
    for obj in _waiting(first, parameters):
        view.apply("ADDED", obj)
    scene = Scene(view, stock_config(), CycleClock(cycle=1, now=cluster.NOW), Carry())
    answers = set[bytes]()
    with settled():
        for _ in range(parameters.runs):
            with samples.timed("queue_s"):
                answers.add(msgspec.json.encode(waiting_jobs_of(scene).standings()))
            with samples.timed("explain_s"):
                account_of(scene, "podgroup", f"{cluster.NAMESPACE}/j{first:05d}")
            advance(1)
    assert len(answers) == 1


def _waiting(first: int, parameters: Parameters) -> Iterator[Object]:
    for place, obj in enumerate(cluster.pending_jobs(first, max(parameters.pods, parameters.gang), parameters.gang)):
        if obj["kind"] == "Pod":
            requests = obj["spec"]["containers"][0]["resources"]["requests"]
            requests["cpu"] = ASKED[place // (parameters.gang + 1) % len(ASKED)]
        else:
            obj["status"]["phase"] = "Inqueue"
        yield obj
