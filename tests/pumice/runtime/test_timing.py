"""The mean cycle out of an exposition."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Histogram, generate_latest

from pumice.runtime.main_job import LATENCY, mean_cycle_s


def test_the_mean_is_the_sum_over_the_count() -> None:
    registry = CollectorRegistry()
    histogram = Histogram(LATENCY, "one session", registry=registry)
    Histogram("other", "labelled", ["queue"], registry=registry).labels('a "b" c').observe(7)
    assert mean_cycle_s(generate_latest(registry)) == 0.0
    for milliseconds in (10, 30):
        histogram.observe(milliseconds)
    assert mean_cycle_s(generate_latest(registry)) == 0.02


def test_nothing_measured_is_nothing() -> None:
    assert mean_cycle_s(b"") == 0.0
