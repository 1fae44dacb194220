"""When an elastic job has all its pods, not only its minimum, and by how much that moves."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.life import Life
from pumice.proof.bench.cycle import stock_config
from pumice.questions.whatif import changes
from pumice.questions.whatif.ask import live, what_if
from pumice.questions.whatif.changes import ForkChange
from pumice.questions.whatif.difference import ChangeCode, JobChange
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import node, nodes
from tests.pumice.questions.whatif.clusters import BEGAN, config_text, parsed


def elastic(one_at_least: int = 1) -> dict[str, Any]:
    job = vcjob("elastic", job_task(replicas=4, cpu="1", duration="300s"))
    job["spec"]["minAvailable"] = one_at_least
    return job


def change_of(change: ForkChange, *objects: dict[str, Any]) -> JobChange | None:
    """What becomes of a job of four pods where two have room immediately and the others after 60 s."""
    others = gang("other", pods=2, nodes=["n0", "n0"], phase="Running", duration="60s")
    fork = Fork((node("n0", cpu="4"), *others, *(objects or (elastic(),))), BEGAN, parsed(config_text(0)))
    return what_if(fork, [change], 200.0).jobs.get("default/elastic")


def test_later_pods_come_earlier_though_the_minimum_starts_as_before() -> None:
    found = change_of(changes.add_nodes("1:like=n0"))
    assert found is not None
    assert found.before is not None
    assert found.after is not None
    assert found.before.start_s == found.after.start_s
    assert found.code is ChangeCode.ALL_PLACED_EARLIER
    assert found.before.all_placed_s == pytest.approx(60.0, abs=1.0)
    assert found.after.all_placed_s == pytest.approx(0.5, abs=1.0)
    assert found.all_by_s == found.by_s == pytest.approx(-59.6, abs=1.0)


def test_pods_that_do_not_exist_yet_are_counted() -> None:
    found = change_of(changes.scale("job/elastic=6"))
    assert found is not None
    assert (found.code, found.by_s, found.all_by_s) == (ChangeCode.ALL_PLACED_NO_MORE, None, None)


def test_where_the_start_moves_it_is_told_beside() -> None:
    found = change_of(changes.add_nodes("1:like=n0"), elastic(3))
    assert found is not None
    assert found.code is ChangeCode.STARTS_EARLIER
    assert found.by_s == found.all_by_s == pytest.approx(-60.0, abs=1.0)


def test_who_was_evicted_and_came_back_counts_once() -> None:
    """Ten seconds have gone by. Room for one comes 20 s later, for another after 50 s: by then one waits, or two where
    one is drained.
    """
    others = [
        obj
        for lasts in (30, 60)
        for obj in gang(f"other-{lasts}", pods=1, nodes=["n0"], phase="Running", duration=f"{lasts}s")
    ]
    objects = (node("n0", cpu="4"), node("n1", cpu="1"), *others, elastic())
    life = Life(Fork(objects, BEGAN, parsed(config_text(0))), 0, lambda mutation, at: None, lambda result, at: None)
    life.run(10.0)
    found = what_if(life.fork(), [changes.drain("n1")], 200.0).jobs["default/elastic"]
    assert found.before is not None
    assert found.after is not None
    assert found.before.all_placed_s == pytest.approx(20.0, abs=1.0)
    assert found.after.all_placed_s == pytest.approx(50.0, abs=1.0)


def test_who_has_succeeded_was_placed() -> None:
    short = vcjob("elastic", job_task(replicas=4, cpu="1", duration="10s"))
    short["spec"]["minAvailable"] = 1
    found = change_of(changes.cordon("n0"), short)
    assert found is not None
    assert found.before is not None
    assert found.before.all_placed_s == pytest.approx(10.5, abs=1.0)


def test_a_gang_says_what_it_lacks_not_where_some_of_its_pods_could_go() -> None:
    fork = Fork((*nodes(4, cpu="4"), vcjob("g", job_task(replicas=5, cpu="3"), min_available=5)), BEGAN, stock_config())
    found = [each for seed in range(8) for each in live(fork, 3.0, seed).pending.values()]
    assert {(waits.code, waits.pods) for waits in found} == {("FreeInPieces", 5)}
    assert all("Insufficient cpu" in waits.message for waits in found)
