"""The work of a future grows with the nodes that preempt tries, not only with its cycles and objects."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.cluster.kernel.fork import Fork
from pumice.questions.whatif.search import starting
from pumice.questions.whatif.search.starting import CountedSteps, lived_start
from tests.kit.jobs import gang
from tests.kit.nodes import nodes
from tests.kit.queues import queue
from tests.pumice.questions.whatif.clusters import BEGAN, config_text, parsed

CONFIG_OF_ALL_ACTIONS = 2


def waiting_on(count: int) -> Fork:
    """Full nodes of three queues, of which two have a gang that waits for larger pods' worth of room."""
    full = [
        each
        for number in range(count)
        for each in gang(
            f"g{number}",
            pods=4,
            cpu="4",
            queue=f"q{number % 3}",
            phase="Running",
            nodes=[f"n{number}"] * 4,
            duration="0",
        )
    ]
    wants = [*gang("wants", pods=8, cpu="6", queue="q0"), *gang("other", pods=8, cpu="8", queue="q1")]
    queues = [queue(f"q{number}", weight=number + 1) for number in range(3)]
    objects = (*nodes(count, cpu="16"), *queues, *full, *wants)
    return Fork(objects, BEGAN, parsed(config_text(CONFIG_OF_ALL_ACTIONS)))


def free(nodes: int) -> float:
    """Steps that cost nothing."""
    return 0.0 * nodes


@pytest.mark.parametrize("count", [3, 6])
def test_work_counts_each_node_that_preempt_tries(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    steps = list[int]()

    class Heard(CountedSteps):
        def task_ended(self, task: Any, ending: Any, detail: str = "", node: int = -1) -> None:
            steps.append(node)
            super().task_ended(task, ending, detail, node)

    monkeypatch.setattr(starting, "CountedSteps", Heard)
    fork = waiting_on(count)
    found = lived_start(fork, "default/wants", 5.0)
    done = len(steps)
    assert sum(node >= 0 for node in steps) > 5 * count, "nodes that are tried are heard of"
    monkeypatch.setattr(starting, "of_step", free)
    assert found.used - lived_start(fork, "default/wants", 5.0).used > done
    assert lived_start(fork, "default/wants", 5.0, units=found.used / 4).used < found.used / 2
