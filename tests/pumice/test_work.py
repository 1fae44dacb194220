"""Budgets count work: the same answer whatever the clock says, and no more done than the budget allows."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from pumice.cluster.kernel.fork import Fork
from pumice.config.load import default_text
from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import Object
from pumice.questions.whatif.search.advice import advised
from pumice.questions.whatif.search.defragment import StartAnswer
from pumice.questions.whatif.search.searches import least, searched
from pumice.questions.whatif.search.starting import StartQuestion, lived_start
from pumice.work import RATE, WorkBudget, WorkOverError
from tests.kit.hyper_nodes import hyper_node
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import node, nodes
from tests.kit.queues import queue
from tests.pumice.cli.terminal import pumice

TOPOLOGY = default_text() + "  - name: network-topology-aware\n"


def fork(*objects: Object, config: str = default_text()) -> Fork:
    return Fork(tuple(objects), 1_800_000_000.0, parse_scheduler_config(config, source="test"))


FULL = fork(queue("default"), node("n0", cpu="2"), *gang("big", pods=2, cpu="2"))


def test_future_ends_where_its_work_does() -> None:
    whole = lived_start(FULL, "default/big", 60.0)
    assert whole.used > 100
    cut = lived_start(FULL, "default/big", 60.0, units=50.0)
    assert cut.starts_s is None
    assert 50.0 <= cut.used < whole.used


def test_search_gives_the_same_answers_on_a_slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(units: float) -> tuple[list[StartAnswer], float]:
        question, answers = StartQuestion(FULL, "default/big", 60.0, work=WorkBudget(units)), list[StartAnswer]()
        with suppress(WorkOverError):
            answers += searched(question)
        return answers, question.work.used

    once = found(60.0)
    monkeypatch.setattr(time, "monotonic", lambda: 1e9)
    assert found(60.0) == once
    assert 60.0 <= once[1] < 120.0
    assert len(found(1e9)[0]) >= len(once[0])


def nothing_left(amount: int) -> bool:
    WorkBudget(0.0).demand(amount)
    return True


def test_least_keeps_what_was_found_when_the_work_ends() -> None:
    def does(amount: int) -> bool:
        if amount == 20:
            raise WorkOverError
        return amount >= 16

    told = least(does, 64)
    assert told is not None
    assert told.amount == 16
    with pytest.raises(WorkOverError):
        least(nothing_left, 4)


def test_second_of_budget_is_a_fixed_amount_of_work() -> None:
    assert WorkBudget.of_seconds(2.0).units == 2 * RATE


def test_until_starts_finds_what_explain_finds_of_a_hard_topology() -> None:
    racks = [hyper_node(f"h{n}", 1, nodes=[f"n{n}"]) for n in range(2)]
    job = vcjob("j", job_task(replicas=2, cpu="3"), min_available=2)
    job["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    top = hyper_node("top", 2, children=["h0", "h1"])
    question = StartQuestion(
        fork(queue("default"), *nodes(2, cpu="4"), *racks, top, job, config=TOPOLOGY), "default/j", 60.0
    )
    assert question.starts() is None
    words = [answer.changes[0] for answer in advised(question)]
    assert any("highestTierAllowed 2 instead of 1" in each for each in words)
    assert any("soft instead of hard" in each for each in words)


def test_more_nodes_are_suggested_after_all_else(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all([queue("default"), node("n0", cpu="2"), *gang("g", pods=3, cpu="2")]), "utf-8")
    told = pumice("explain", "podgroup", "g", "-f", file, "-o", "json").json
    assert told["unblock"][-1] == "3 of 3 fit with: 2 more nodes like n0"


def test_horizon_beside_a_search_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all(list(FULL.objects)), "utf-8")
    said = pumice("whatif", "-f", file, "--until-starts", "big", "--horizon", "1h")
    assert said.code == 2
    assert "--horizon: a search looks as far as --within says: leave it out" in said.err


def test_moved_pods_are_shown_and_no_evictions_said(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all([queue("default"), *nodes(2, cpu="4"), *gang("g", pods=1, cpu="2")]), "utf-8")
    at = ("whatif", "-f", file, "--cordon", "n0", "--horizon", "60s")
    told = pumice(*at, "-o", "json").json
    assert told["moved_pods"] == {"default/g-0": {"before": "n0", "after": "n1"}}
    said = pumice(*at, "-o", "table")
    assert said.code == 1
    assert "default/g-0: n0 → n1" in said.out
    assert "No evictions." in said.out
