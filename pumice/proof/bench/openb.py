# SPDX-License-Identifier: Apache-2.0
"""`openb`: the pods of the openb trace onto its nodes, one PodGroup a pod, in one cycle."""

from __future__ import annotations

from typing import Final

from pumice.core.objects.metadata import Object
from pumice.errors import InputError
from pumice.load.openb import PREFIX, QUEUE, pod_group_of, read_openb
from pumice.proof.bench.allocate import run_on_fresh_views
from pumice.proof.bench.cycle import stock_config
from pumice.proof.bench.figures import Advance, Parameters, Samples

UNNAMED: Final = f"{PREFIX}NODES.csv,PODS.csv"
DEFAULTS: Final = Parameters(trace=UNNAMED)


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure runs: each fills a fresh view with the trace and runs one cycle."""
    if parameters.trace == UNNAMED:
        raise InputError(f"name the trace's files with -f {UNNAMED}", path="openb")
    objects: list[Object] = [QUEUE]
    for obj in read_openb(parameters.trace):
        if obj["kind"] == "Pod":
            objects += with_group(obj)
        else:
            objects.append(obj)
    run_on_fresh_views(objects, stock_config(), parameters.runs, samples, advance)


def with_group(pod: Object) -> tuple[Object, Object]:
    """Return a plain pod with a uid, and the PodGroup that the controller would have made for it."""
    grouped, group = pod_group_of(pod)
    grouped["metadata"]["uid"] = f"openb-{grouped['metadata']['name']}"
    return group, grouped
