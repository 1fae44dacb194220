"""An evaluation gives the figures of a policy over seeds, alike wherever and however often it runs."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import fmean

import pytest

import pumice
from pumice.config.errors import ConfigError
from pumice.core.devices.vgpu.settings import MEMORY, NUMBER
from pumice.core.objects.metadata import Object
from pumice.core.plugins import PLUGINS
from pumice.errors import InputError
from pumice.executors import local
from pumice.questions.evaluation.evaluate import Interval, objective_of, student_t

CONFIG = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: nodeorder
    arguments: {leastrequested.weight: 0, balancedresource.weight: 0}
  - name: binpack
    arguments: {binpack.weight: 10}
"""
WAITS = ["minimise wait.mean", "maximise util.cpu"]
PREFERS = """\
class Last:
    name = "last"
    def __init__(self, arguments):
        self.most = arguments.get("most", "node-1")
    def on_session_open(self, session):
        session.points.node_order.add(self.name, lambda task, node: 100.0 if node.name == self.most else 0.0)
    def on_session_close(self, session):
        pass
PLUGINS = {"last": Last}
"""
OF_MODULE = CONFIG.replace("binpack", "last").replace("last.weight: 10", "most: node-1")


def jobs(count: int = 12) -> list[Object]:
    return [
        pumice.gang(f"j{each}", 1 + each % 2, cpu=2, duration=f"{20 + each}s", arrival=f"{each}s")
        for each in range(count)
    ]


def workload(**options: object) -> pumice.Workload:
    return pumice.Workload("small", [*pumice.nodes(2, cpu=4), *jobs()], **options)  # type: ignore[arg-type]


def test_figures_are_those_of_a_cluster_that_lives_through_it() -> None:
    found = pumice.evaluate(CONFIG, workload(), WAITS)
    lived = pumice.Cluster(*workload().drawn(0), config=CONFIG).run("idle").summary
    assert found.figures is not None
    assert found.score == pytest.approx(lived["mean_wait_s"], abs=0.001)
    assert found.scores[1] == pytest.approx(lived["resources"]["cpu"]["utilisation"], abs=0.001)
    assert (found.figures["wait.mean"].low, found.holds, found.fresh) == (None, True, 1)


def test_what_ran_before_is_kept_and_equal(tmp_path: Path) -> None:
    evaluator = pumice.Evaluator(workload(), WAITS, 3, keep=tmp_path)
    first, again = evaluator(CONFIG), evaluator(CONFIG)
    other = evaluator(pumice.Policy(CONFIG, arguments={"binpack.binpack.weight": 1}))
    assert (first.fresh, again.fresh, again.kept, other.fresh) == (3, 0, 3, 3)
    assert (first.figures, first.cpu_s, first.key) == (again.figures, again.cpu_s, again.key)
    assert first.key != other.key
    assert first.figures is not None
    assert len(set(first.figures["wait.mean"].values)) == 3  # each seed is another draw


@pytest.mark.slow
def test_processes_give_what_this_process_gives() -> None:
    policy = pumice.Policy(OF_MODULE, modules={"last": PREFERS})
    here = pumice.evaluate(policy, workload(), WAITS, 3)
    there = pumice.evaluate(policy, workload(), WAITS, 3, executors=partial(local, 2))
    assert (here.figures, here.workloads["small"].broken) == (there.figures, there.workloads["small"].broken)


def test_an_executor_of_the_callers_own_stays_open() -> None:
    with ThreadPoolExecutor(1) as mine:
        given = pumice.Evaluator(workload(), WAITS, executors=mine)
        first = given(CONFIG)
        given.close()
        assert pumice.evaluate(CONFIG, workload(), WAITS, executors=mine).figures == first.figures


@pytest.mark.slow
def test_dask_gives_what_this_process_gives() -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'pumice[dask]'")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        block = pumice.executors.dask(cluster.scheduler_address)
        there = pumice.evaluate(CONFIG, workload(), WAITS, 3, executors=block)
    assert there.figures == pumice.evaluate(CONFIG, workload(), WAITS, 3).figures


def test_constraints_count_the_seeds_that_break_them() -> None:
    expect = [{"measure": "wait.max", "op": "<=", "value": "1s"}, {"measure": "unstarted", "op": "==", "value": 0}]
    found = pumice.evaluate(CONFIG, workload(), seeds=2, expect=expect)
    assert found.workloads["small"].broken == {"wait.max <= 1s": 2}
    assert not found.holds


def test_several_workloads_are_averaged_seed_by_seed() -> None:
    small, large = workload(), pumice.Workload("large", [*pumice.nodes(4, cpu=4), *jobs()])
    found = pumice.evaluate(CONFIG, [small, large], seeds=[1, 2])
    both = [found.workloads[name].figures["wait.mean"].values for name in ("small", "large")]
    assert found.figures is not None
    assert found.figures["wait.mean"].values == [fmean(each) for each in zip(*both, strict=True)]


# --- Placement alone


def placed(config: str, objects: list[Object], measure: str = "util.cpu", seeds: int = 1) -> pumice.Evaluation:
    given = pumice.Workload("placement", objects, placement=True)
    return pumice.evaluate(config, given, f"maximise {measure}", seeds)


def test_a_placement_lets_no_time_pass_and_drops_what_fits_nowhere() -> None:
    objects = [*pumice.nodes(2, cpu=4), *(pumice.gang(f"j{each}", 1, cpu=3) for each in range(3))]
    found = placed(CONFIG, objects)
    assert found.score == 6 / 8
    assert placed(CONFIG, objects, "unstarted").score == 1.0
    assert placed(CONFIG, objects, "frag.cpu").score == 1.0


def test_seeds_of_a_placement_shuffle_the_order_of_arrival() -> None:
    objects = [*pumice.nodes(2, cpu=4), *(pumice.gang(f"j{each}", 1, cpu=1 + each % 4) for each in range(7))]
    for number, obj in enumerate(objects):
        obj["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{number:02}Z"
    found = placed(CONFIG, objects, "unstarted", seeds=6)
    assert found.figures is not None
    assert len(set(found.figures["unstarted"].values)) > 1


def test_memory_of_virtual_cards_counts_for_each_card() -> None:
    cards = pumice.nodes(1, cpu=8, extra={NUMBER: 40, MEMORY: 4000})
    pair = pumice.gang("pair", 1, extra={NUMBER: 2, MEMORY: 1000})
    assert placed(CONFIG, [*cards, pair], f"util.{MEMORY}").score == 0.5


# --- Policies


def test_a_module_of_plugins_decides_and_is_gone_afterwards() -> None:
    objects = [*pumice.nodes(2, cpu=4), pumice.gang("one", 1, cpu=1, duration="1s")]
    found = [
        pumice.evaluate(
            pumice.Policy(OF_MODULE, modules={"last": PREFERS}, arguments={"last.most": node}),
            objects,
            f"maximise where.{node}",
        ).score
        for node in ("node-0", "node-1")
    ]
    assert found == [1.0, 1.0]
    assert "last" not in PLUGINS


def test_answers_that_a_plugin_fails_to_give_are_counted() -> None:
    broken = PREFERS.replace("100.0 if node.name == self.most else 0.0", "1 / 0")
    found = pumice.evaluate(pumice.Policy(OF_MODULE, modules={"last": broken}), workload())
    assert found.workloads["small"].failed_answers > 0


@pytest.mark.parametrize(
    ("policy", "objective", "said"),
    [
        (pumice.Policy(CONFIG, arguments={"drf.x": 1}), "minimise wait.mean", "has no plugin 'drf'"),
        (pumice.Policy("actions: [\n", actions="allocate"), "minimise wait.mean", "not YAML"),
        (pumice.Policy(CONFIG, modules={"m": "1 / 0"}), "minimise wait.mean", "m.py: cannot be loaded: ZeroDivision"),
        (pumice.Policy(CONFIG, modules={"m": ""}), "minimise wait.mean", "m.py: has no table PLUGINS"),
        (CONFIG, "wait.mean", "expected an objective such as"),
        (CONFIG, "minimise wait.most", "expected one of mean"),
        (CONFIG, "minimise waits", "unknown measure 'waits'"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(policy: pumice.Policy | str, objective: str, said: str) -> None:
    with pytest.raises((InputError, ConfigError), match=said):
        pumice.evaluate(policy, workload(), objective)


def test_workloads_and_seeds_that_ask_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="nothing to schedule"):
        pumice.evaluate(CONFIG, pumice.nodes(2))
    with pytest.raises(InputError, match="at least one seed"):
        pumice.evaluate(CONFIG, workload(), seeds=0)
    with pytest.raises(InputError, match="a name of its own"):
        pumice.evaluate(CONFIG, [workload(), workload()])
    with pytest.raises(InputError, match="has no base"):
        pumice.evaluate(CONFIG, workload(), expect=[{"measure": "wait.max", "op": "<", "value": "base"}])


# --- Figures


def test_an_interval_is_students() -> None:
    published = {1: 12.706, 5: 2.571, 6: 2.447, 9: 2.262, 30: 2.042, 1000: 1.962}
    assert {degrees: round(student_t(degrees), 3) for degrees in published} == pytest.approx(published, abs=0.0015)
    assert Interval.of([1.0, 2.0, 3.0]) == Interval(2.0, -0.484338, 4.484338, [1.0, 2.0, 3.0])
    assert Interval.of([4.0]) == Interval(4.0, None, None, [4.0])


def test_an_objective_knows_what_is_better() -> None:
    assert objective_of("minimise wait.mean").is_better(1.0, 2.0)
    assert objective_of("maximise util.cpu").is_better(2.0, 1.0)


def test_an_evaluator_keeps_its_processes_for_the_next_policy() -> None:
    """Starting them takes longer than a small run."""
    opened = list[int]()

    @contextmanager
    def counted() -> Generator[Executor]:
        opened.append(1)
        with ThreadPoolExecutor(2) as threads:
            yield threads

    evaluator = pumice.Evaluator(workload(), WAITS, 2, executors=counted)
    weights = [pumice.Policy(CONFIG, arguments={"binpack.binpack.weight": weight}) for weight in (1, 2)]
    found = [evaluator(policy) for policy in weights]
    assert (len(opened), [each.fresh for each in found]) == (1, [2, 2])
    evaluator.close()
    assert evaluator(weights[0]).scores == found[0].scores
    assert len(opened) == 2
