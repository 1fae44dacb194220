"""What queues deserve over time is what the plugins that share among them reckon, live and from a journal."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

import pumice
from pumice import LivedRun
from pumice.questions.adviser.pictures import measures_of

CAPACITY = """\
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: capacity}]
"""


def two_queues(config: str | None = None) -> pumice.Cluster:
    """8 cpus. The job of `a` asks for all of them for a minute; that of `b` for as many, 10 s later."""
    queues = pumice.queue("a", weight=3, deserved={"cpu": 5}), pumice.queue("b", deserved={"cpu": 3})
    cluster = pumice.Cluster(pumice.nodes(2, cpu=4), queues, config=config)
    for name, arrival in (("a", "0s"), ("b", "10s")):
        cluster.submit(pumice.gang(name, pods=8, queue=name, min_available=1, duration="60s", arrival=arrival))
    return cluster


def at(run: LivedRun, queue: str, second: int) -> float:
    (series,) = [
        one for one in run.measures.series if (one.what, one.resource, one.queue) == ("deserved", "cpu", queue)
    ]
    return series.values[second]


def test_by_weight_as_long_as_both_ask() -> None:
    run = two_queues().run("idle")
    assert [(at(run, "a", second), at(run, "b", second)) for second in (5, 30, 65)] == [(8, 0), (6, 2), (0, 8)]
    (a, b) = [row for row in run.rows("queues") if row.resource == "cpu"]
    assert (a.deserved_s, b.deserved_s) == pytest.approx((8 * 10 + 6 * 50, 2 * 50 + 8 * 60), abs=4)


def test_as_the_queues_say_under_capacity(tmp_path: Path) -> None:
    cluster = two_queues(CAPACITY)
    live = cluster.run("40s")
    cluster.save(tmp_path / "run.db")
    for run in (live, pumice.measures_of(tmp_path / "run.db")):
        assert (at(run, "a", 30), at(run, "b", 30)) == (5, 3)
    looked = anyio.run(measures_of, tmp_path / "run.db")
    assert not [one for one in looked["series"] if one["what"] == "deserved"]


def test_nobody_reckons_without_such_a_plugin() -> None:
    run = two_queues(CAPACITY.replace("{name: capacity}", "{name: drf}")).run("idle")
    assert not [one for one in run.measures.series if one.what == "deserved"]
    assert {row.deserved_s for row in run.rows("queues")} == {0.0}
