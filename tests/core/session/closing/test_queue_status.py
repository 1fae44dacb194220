"""What the status of a queue says is allocated: what its own jobs hold, and what those below it do."""

from __future__ import annotations

from core.cycle import close_session
from tests.core.plugins.world import configuration, open_world
from tests.kit import gang, node, queue


def test_what_is_held_in_a_queue_counts_in_all_above_it_up_to_the_root() -> None:
    tree = [queue("root"), queue("a", parent="root"), queue("b", parent="a"), queue("c", parent="b"), queue("other")]
    jobs = [
        *gang("deep", queue="c", pods=2, nodes=["n0", "n0"], phase="Running"),
        *gang("high", queue="a", pods=1, nodes=["n0"], phase="Running"),
    ]
    session = open_world(configuration(["gang"]), node("n0"), tree, jobs)
    held = {status.name: status.allocated.get("cpu", "0") for status in close_session(session).queues}
    assert held == {"root": "3", "a": "3", "b": "2", "c": "2", "other": "0"}
