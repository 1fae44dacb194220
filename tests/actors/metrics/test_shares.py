"""Shares of jobs and namespaces under Volcano's names."""

from __future__ import annotations

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest

from pumice.actors.metrics.metrics import MOST, ShareFamilies
from pumice.core.messages.queue_tables import JobShares


def lines(shares: JobShares) -> list[str]:
    families, registry = ShareFamilies(), CollectorRegistry()
    families.show(shares)
    registry.register(families)
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_shares_of_jobs_and_namespaces() -> None:
    told = JobShares(["a/x", "b/y"], np.array([0.25, 0.5]).tobytes(), ["a", "b"], np.array([0.25, 0.5]).tobytes())
    assert lines(told) == [
        'volcano_job_share{job_id="y",job_ns="b"} 0.5',
        'volcano_job_share{job_id="x",job_ns="a"} 0.25',
        'volcano_namespace_share{namespace_name="a"} 0.25',
        'volcano_namespace_share{namespace_name="b"} 0.5',
        'volcano_namespace_weight{namespace_name="a"} 1.0',
        'volcano_namespace_weight{namespace_name="b"} 1.0',
        'volcano_namespace_weighted_share{namespace_name="a"} 0.25',
        'volcano_namespace_weighted_share{namespace_name="b"} 0.5',
    ]
    assert lines(JobShares()) == []


def test_the_largest_are_shown_where_there_are_too_many() -> None:
    shares = np.arange(MOST + 5) / 1e6
    told = lines(JobShares([f"a/j{number}" for number in range(MOST + 5)], shares.tobytes()))
    assert (len(told), f'job_id="j{MOST + 4}"' in told[0], any('"j4"' in line for line in told)) == (MOST, True, False)
