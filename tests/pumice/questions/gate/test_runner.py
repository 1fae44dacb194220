"""Runs: kept by content, at the same time or in turn, with the same records."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pumice.lab.builders import nodes
from pumice.plugins.loader import install_plugins
from pumice.questions.gate.expectations import expectation_of
from pumice.questions.gate.gate import base_task, head_task, lived
from pumice.questions.gate.judging import Pair
from pumice.questions.gate.policy import DefaultLimits, GatePolicy, Noise, Workload
from pumice.questions.gate.record import RecordedLoop, RunRecord
from pumice.questions.gate.run import RunTask, run
from pumice.questions.gate.runner import KeptRuns, Key, PairTask, Runner, is_unlimited, key_of, whole_of
from pumice.questions.gate.sides import PolicySides, Side, read_side
from pumice.questions.gate.workloads import Trial
from pumice.questions.sweep.one_run import key_of as sweep_key
from tests.quality.gate.bad import BAD
from tests.quality.gate.parts import CLASSES, conf, policy, urgent_work

CHANGES = {change.name: change for change in BAD}


def side(folder: Path, files: Mapping[str, str]) -> Side:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return read_side(folder.name, folder)


def sides(folder: Path, name: str) -> PolicySides:
    change = CHANGES[name]
    return PolicySides(side(folder / "base", change.base), side(folder / "head", change.head))


def pair_task(both: PolicySides, until_s: float) -> PairTask:
    """Urgent work, of which head may end early from the beginning on."""
    expect = (expectation_of("", "wait.mean[name=urgent-*]", "<=", "base + 2s"),)
    trial = Trial(Workload("w", (), until_s=until_s), urgent_work(), expect)

    def head(base: RunRecord | None) -> RunTask:
        return msgspec.structs.replace(head_task(trial, both, GatePolicy(), base), patience=0)

    return PairTask(base_task(trial, both, GatePolicy()), head(None), head)


@contextmanager
def threads() -> Generator[Executor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def test_both_ways_to_run_give_the_same_records(tmp_path: Path) -> None:
    task = {"w": pair_task(sides(tmp_path, "preempt-dropped"), 400.0)}
    in_turn = Runner(KeptRuns(None)).pairs(task)
    beside = Runner(KeptRuns(tmp_path / "kept"), threads).pairs(task)
    assert in_turn == beside
    assert Runner(KeptRuns(tmp_path / "kept")).pairs(task) == beside
    assert (in_turn["w"].base.stopped, in_turn["w"].base.horizon_s) == ("", 400.0)
    assert in_turn["w"].head.stopped == "wait.mean[name=urgent-*] <= base + 2s"
    assert in_turn["w"].head.horizon_s < 250.0


def test_pairs_with_one_base_share_its_run_and_the_pool(tmp_path: Path) -> None:
    task = pair_task(sides(tmp_path, "preempt-dropped"), 100.0)
    begun, pools = list[RunTask](), list[int]()

    class Counting(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            begun.append(args[0])
            return super().submit(fn, *args, **kwargs)

    @contextmanager
    def counted() -> Generator[Counting]:
        pools.append(1)
        with Counting(2) as pool:
            yield pool

    def until(end: float) -> PairTask:
        def head(_: object) -> Any:
            return msgspec.structs.replace(task.whole, until_s=end)

        return task._replace(head=head)

    others = {"b": until(90.0), "c": until(80.0)}
    found = Runner(KeptRuns(None), counted).pairs({"a": task, **others})
    assert (list(found), len(pools), begun.count(task.base)) == (["a", "b", "c"], 1, 1)
    assert [found[name].head.horizon_s for name in "bc"] == [90.0, 80.0]
    assert found["b"].base is found["c"].base


def test_a_head_that_breaks_nothing_is_the_whole_run(tmp_path: Path) -> None:
    base = side(tmp_path / "base", policy(conf(), *CLASSES))
    head = side(tmp_path / "head", policy(conf(period="200ms"), *CLASSES))
    task = pair_task(PolicySides(base, head), 300.0)
    found = Runner(KeptRuns(tmp_path / "kept"), threads).pairs({"w": task})["w"]
    limited, whole = task.head(found.base), run(task.whole)
    assert (limited.limits != (), found.head == whole, is_unlimited(limited, whole)) == (True, True, True)
    assert whole_of(limited) == task.whole
    looping = msgspec.structs.replace(whole, evictions=whole.evictions * 30)
    assert not is_unlimited(limited, looping)


def test_more_draws_than_one_have_no_limits(tmp_path: Path) -> None:
    trial = Trial(Workload("w", (), until_s=60.0), nodes(1), (expectation_of("", "wait.max", "<=", 1),))
    both = sides(tmp_path, "preempt-dropped")
    for draws, limited in ((1, True), (2, False)):
        heard = _Heard()
        lived([trial], both, GatePolicy(noise=Noise(draws)), heard)
        assert [bool(task.limits) for task in heard.heads] == [limited] * draws


class _Heard(Runner):
    def __init__(self) -> None:
        super().__init__(KeptRuns(None))
        self.heads: list[RunTask] = []

    def pairs(self, tasks: Mapping[Key, PairTask], ended: Callable[[], None] = lambda: None) -> dict[Key, Pair]:
        self.heads = [task.head(RunRecord(60.0)) for task in tasks.values()]
        return {key: Pair(RunRecord(60.0), RunRecord(60.0)) for key in tasks}


def test_equal_sides_that_loop_are_lived_to_their_horizon(tmp_path: Path) -> None:
    change = CHANGES["deserved-cuts-a-pod"]
    looping = side(tmp_path / "head", change.head)
    trial = Trial(Workload("w", (), until_s=60.0), change.workload, ())
    (pair,) = lived([trial], PolicySides(looping, looping), GatePolicy(), Runner(KeptRuns(None)))["w"]
    assert pair.base.loops
    assert (pair.base.stopped, pair.head.stopped, pair.head.horizon_s) == ("", "", 60.0)
    assert pair.base == pair.head


LOOPING = RunRecord(100.0, loops=(RecordedLoop(("a", "b"), 30),))


@pytest.mark.parametrize(
    ("until_s", "off", "base", "stops"),
    [
        (None, (), LOOPING, True),
        (200.0, (), RunRecord(100.0), True),
        (200.0, (), LOOPING, False),
        (200.0, ("no-eviction-loop",), RunRecord(100.0), False),
    ],
)
def test_a_loop_ends_head_where_it_is_the_verdict(
    until_s: float | None, off: tuple[str, ...], base: RunRecord, stops: bool, tmp_path: Path
) -> None:
    trial = Trial(Workload("w", (), until_s=until_s), (), ())
    judged_by = GatePolicy(defaults=DefaultLimits(off=off))
    assert head_task(trial, sides(tmp_path, "preempt-dropped"), judged_by, base).stops_at_loops is stops


def task(**more: object) -> RunTask:
    return RunTask(b"", "", "", 0.0, 100.0, 5.0, **more)  # type: ignore[arg-type]


def test_a_plugin_that_is_edited_misses_the_cache(tmp_path: Path) -> None:
    plugin = tmp_path / "plugins/tried.py"
    plugin.parent.mkdir()
    keys, sweeps = list[str](), list[str]()
    for text in ("PLUGINS = {'tried-here': lambda arguments: None}", "PLUGINS = {'tried-here': lambda options: None}"):
        plugin.write_text(text)
        install_plugins(plugin.parent)
        runner = Runner(KeptRuns(None), None, str(plugin.parent))
        keys.append(key_of(runner.with_plugins(task())))
        sweeps.append(sweep_key({}, tmp_path))
    assert len(set(keys)) == len(set(sweeps)) == 2
    assert key_of(task(plugins_dir="a")) == key_of(task(plugins_dir="b"))
