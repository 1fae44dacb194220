"""A cluster in a program decides what the whole system decides, in any event loop or none."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import pumice
from pumice.config.errors import ConfigError
from pumice.core.plugins import PLUGINS
from pumice.core.session.session import Session
from pumice.errors import InputError
from pumice.questions.explain.account import NotFoundError

FULL = "default/{}".format


def two_gangs() -> pumice.Cluster:
    """The second one has to wait for the first."""
    cluster = pumice.Cluster(pumice.nodes(4, cpu=8, gpu=2))
    cluster.submit(pumice.gang("train", pods=8, gpu=1, duration="10m"))
    cluster.submit(pumice.gang("late", pods=2, gpu=1, duration="1m", arrival="30s"))
    return cluster


def test_make_a_cluster_submit_run_a_cycle_look() -> None:
    cluster = two_gangs()
    decided = cluster.step()
    assert sorted(decided.binds) == [FULL(f"train-worker-{number}") for number in range(8)]
    assert decided.at < 1
    cluster.run(60)
    assert cluster.time == pytest.approx(60.1)
    assert {phase for phase, _ in cluster.pods().values()} == {"Running"}
    assert "asks 2 nvidia.com/gpu" in cluster.explain("late").message
    run = cluster.run("idle")
    assert (run.job("train").run_s, run.job("late").state) == (600, "Completed")
    assert run.job("late").wait_s == pytest.approx(570, abs=1)
    assert run.summary["jobs"] == run.summary["ended"] == 2


def test_a_fork_goes_its_own_way() -> None:
    cluster = two_gangs()
    cluster.run(60)
    other = cluster.fork()
    other.submit(pumice.nodes(1, gpu=2, name="more"))
    assert other.run("idle").job("late").wait_s is not None
    assert other.time < 600
    assert cluster.time == 60
    assert len(cluster.objects("Node")) == 4
    late = cluster.what_if(pumice.changes.nodes_like("node-0", 1), seconds=1200).jobs["default/late"]
    assert late.by_s == pytest.approx(-540, abs=2)


@pytest.mark.anyio
async def test_what_is_saved_is_what_the_whole_system_does_whatever_loop_runs(tmp_path: Path) -> None:
    cluster = two_gangs()
    here = {row.job: (row.wait_s, row.run_s) for row in cluster.run("20m").jobs}
    cluster.save(tmp_path / "run.db")
    run = pumice.measures_of(tmp_path / "run.db")
    assert {row.job: (row.wait_s, row.run_s) for row in run.jobs} == here
    assert run.summary["makespan_s"] == cluster.lived().summary["makespan_s"]
    again = pumice.Cluster.of_journal(tmp_path / "run.db")
    assert {phase for phase, _ in again.pods().values()} == {"Succeeded"}
    with pytest.raises(InputError, match="there is a file already"):
        cluster.save(tmp_path / "run.db")


class Shy:
    """Keeps everybody off the first node."""

    name = "shy"

    def __init__(self, arguments: Any) -> None:
        pass

    def on_session_open(self, session: Session) -> None:
        session.points.predicate.add("shy", lambda task, node: "shy" if node.name == "node-0" else None)

    def on_session_close(self, session: Session) -> None:
        pass


CONFIG = """\
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: shy}]
"""


def test_plugins_of_ones_own_are_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.core.cycle.PLUGINS", table := dict(PLUGINS))
    monkeypatch.setattr("pumice.core.plugins.PLUGINS", table)
    monkeypatch.setattr("pumice.lab.cluster.PLUGINS", table)
    cluster = pumice.Cluster(pumice.nodes(2), config=CONFIG, plugins={"shy": Shy})
    cluster.submit(pumice.gang("g", pods=2))
    assert set(cluster.step().binds.values()) == {"node-1"}
    with pytest.raises(InputError, match="built-in"):
        pumice.Cluster(plugins={"gang": Shy})


def test_queues_priorities_and_preemption() -> None:
    config = CONFIG.replace("{name: shy}", "{name: priority}, {name: drf}").replace("allocate", "allocate, preempt")
    cluster = pumice.Cluster(
        pumice.nodes(1, cpu=2),
        pumice.queue("research", weight=2, capability={"cpu": 2}),
        pumice.priority_class("urgent", 1000),
        config=config,
    )
    cluster.submit(pumice.gang("low", pods=2, min_available=1, queue="research", duration="1h"))
    cluster.step()
    cluster.submit(pumice.gang("high", pods=1, queue="research", duration="1m", priority="urgent"))
    run = cluster.run(40)  # longer than the victim's grace period
    assert [evict.job.startswith("default/low-") for each in cluster.cycles for evict in each.evictions] == [True]
    assert (run.job("low").evictions, run.job("high").state) == (1, "Running")
    assert run.job("low").lost_pod_s > 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": "Pod"}, "expected an object of a kind"),
        ({"apiVersion": "v1", "kind": "Pod"}, "with metadata"),
        (pumice.gang("NOT a name", pods=1), "NOT a name"),
        (
            {**pumice.gang("g", pods=1, arrival="soon")},
            "1h30m or a time such as .*, was 'soon'",
        ),
        ("a path", "expected an object as a mapping, or a list of such, was 'a path'"),
        ([{"kind": "Pod"}, 5], "expected an object of a kind"),
        (5, "or a list of such, was 5"),
    ],
)
def test_what_the_api_refuses_is_said(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        pumice.Cluster().submit(given)


def test_what_there_is_not() -> None:
    cluster = two_gangs()
    with pytest.raises(KeyError):
        cluster.run(1).job("nobody")
    with pytest.raises(NotFoundError):
        cluster.explain("nobody")
    with pytest.raises(AttributeError, match="nothing"):
        _ = pumice.nothing


def test_files_and_traces_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("arrival,duration,pods\n0,10,2\n100,10,1\n", "utf-8")
    cluster = pumice.Cluster(pumice.nodes(1), pumice.read(f"csv:{tmp_path / 't.csv'}"))
    run = cluster.run("idle")
    assert [(row.submitted, row.run_s) for row in run.jobs] == [(0, 10), (100, 10)]
    with pytest.raises(InputError, match="does not exist"):
        pumice.read(tmp_path / "none.yaml")


def test_a_configuration_may_be_what_its_text_comes_to() -> None:
    config = {"actions": "enqueue, allocate", "tiers": [{"plugins": [{"name": "gang"}, {"name": "predicates"}]}]}
    cluster = pumice.Cluster(pumice.nodes(1, cpu=2), pumice.gang("g", pods=3), config=config)
    assert not cluster.step().binds
    with pytest.raises(ConfigError, match="nobody"):
        pumice.Cluster(config={**config, "tiers": [{"plugins": [{"name": "nobody"}]}]})
    with pytest.raises(ConfigError, match="given:1: actions: unknown action 'allocte'"):
        pumice.Cluster(config="actions: allocte")
    with pytest.raises(InputError, match="config: expected a path, a text or a mapping, was 5"):
        pumice.Cluster(config=cast("Any", 5))


ROWS = [
    {"arrival": 0, "duration": 10, "pods": 2, "queue": "q", "priority": 7, "user": "eve"},
    {"arrival": 100.5, "duration": 20, "cpu": "500m", "memory": "1Gi", "gpu": 1, "name": "late"},
]


def test_a_trace_is_rows() -> None:
    cluster = pumice.Cluster(pumice.nodes(2, gpu=1), pumice.trace(ROWS))
    first, late = cluster.run("idle").jobs
    assert (first.job, first.queue, first.user, first.priority_class, first.pods) == (
        "default/job-0",
        "q",
        "eve",
        "priority-7",
        2,
    )
    assert (late.job, late.submitted, late.run_s, late.cpu, late.gpu) == ("default/late", 100.5, 20, 0.5, 1)
    with pytest.raises(InputError, match="expected the columns arrival"):
        pumice.trace([*ROWS, {"duration": 1}])
    with pytest.raises(InputError, match=r"rows:1.*arrival.*expected a number ≥ 0, was 'soon'"):
        pumice.trace([{"arrival": "soon", "duration": 1}])


def test_measures_are_arrays_and_arrow() -> None:
    cluster = pumice.Cluster(pumice.nodes(1, cpu=2), pumice.trace(ROWS[:1]))
    cluster.submit(pumice.gang("never", pods=3))
    run = cluster.run("2m")
    columns = run.arrays("jobs")
    assert columns["job"].tolist() == ["default/job-0", "default/never"]
    assert (columns["pods"].tolist(), columns["run_s"][0], np.isnan(columns["wait_s"][1])) == ([2, 0], 10.0, True)
    assert {*run.arrays("series")["what"]} >= {"capacity", "held", "waiting", "fragmentation"}
    assert len(run.arrays("queues")["share"]) == len(run.rows("queues")) > 0
    with pytest.raises(KeyError, match="nodes"):
        run.arrays("nodes")  # type: ignore[arg-type]
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'pumice[tables]'")
    table = run.arrow("jobs")
    assert table.column("job").to_pylist() == ["default/job-0", "default/never"]
    assert table.column("wait_s").null_count == 1


@pytest.mark.parametrize("until", [-5, float("nan"), float("inf"), "-5s"])
def test_time_does_not_go_back(until: float) -> None:
    cluster = pumice.Cluster(pumice.nodes(1))
    with pytest.raises(InputError, match="expected a time that can go by"):
        cluster.run(until)
    assert cluster.time == 0


@pytest.mark.parametrize("until", ["soon", None, [1]])
def test_times_are_seconds_or_durations(until: Any) -> None:
    with pytest.raises(InputError, match="expected seconds or a duration such as 90s or 1h30m"):
        pumice.Cluster().run(until)
    with pytest.raises(InputError, match="expected seconds or a duration"):
        pumice.Cluster(default_duration=until)


@pytest.mark.parametrize("pods", [0, -1, "3", 1.5])
def test_a_gang_has_pods(pods: Any) -> None:
    with pytest.raises(InputError, match="expected a number of pods of g from 1 on"):
        pumice.gang("g", pods=pods)


def test_a_number_of_nodes_is_none_or_more() -> None:
    assert pumice.nodes(0) == []
    with pytest.raises(InputError, match="expected a number of nodes from 0 on, was -1"):
        pumice.nodes(-1)


def test_jobs_that_come_later_are_never_all_unpacked() -> None:
    cluster = pumice.Cluster(pumice.nodes(1))
    cluster.submit(pumice.gang("first", pods=1, arrival="1s"))  # what is made once
    tracemalloc.start()
    try:
        cluster.submit(pumice.gang(f"j{number}", pods=1, arrival=f"{number + 2}s") for number in range(1000))
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 2.5 * kept
