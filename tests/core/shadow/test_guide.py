"""Of equally good nodes the wished one is taken; of others it is said why it is not the best here."""

from typing import Any

import pytest

from pumice.config.load import default_text
from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import run_cycle
from pumice.core.messages.decisions import Bind, CycleResult, Decision
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.shadow.guide import Guide
from pumice.core.shadow.standing import differing, ties, wishes_of
from pumice.core.state.view import View
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.queues import queue

CONFIG = parse_scheduler_config(default_text(), source="test")
UNEQUAL = [node("a", cpu="4"), node("b", cpu="8"), node("c", cpu="2")]


def decided(objects: list[dict[str, Any]], guide: Guide | None = None) -> CycleResult:
    view = View()
    for each in (queue("default"), *objects):
        view.apply("ADDED", each)
    more: dict[str, Any] = {} if guide is None else {"trail": guide}
    return run_cycle(view.snapshot(), CONFIG, CycleClock(1, 1.0), Carry(), **more)


def moved(result: CycleResult, **nodes: str) -> list[Decision]:
    """What was decided, with these pods on other nodes."""
    return [Bind(b.namespace, b.name, b.uid, nodes.get(b.name.replace("-", "_"), b.node), b.job) for b in result.binds]


def places(result: CycleResult) -> dict[str, str]:
    return {each.name: each.node for each in result.binds}


def test_a_tie_is_broken_as_it_was_there() -> None:
    objects = [*(node(name) for name in "abc"), *gang("g", pods=1)]
    alone = decided(objects)
    assert places(alone) == {"g-0": "a"}
    there = moved(alone, g_0="c")
    guide = Guide(wishes_of(there))
    beside = decided(objects, guide)
    assert places(beside) == {"g-0": "c"}
    assert differing(there, beside, guide) == []
    assert ties(there, beside, guide) == 1


def test_what_follows_a_tie_begins_from_it() -> None:
    """The second pod is wished for where the first would have been, which is the best only once that went elsewhere."""
    objects = [*(node(name) for name in "ab"), *gang("g", pods=2)]
    alone = decided(objects)
    assert places(alone) == {"g-0": "a", "g-1": "b"}
    there = moved(alone, g_0="b", g_1="a")
    guide = Guide(wishes_of(there))
    beside = decided(objects, guide)
    assert differing(there, beside, guide) == []
    assert ties(there, beside, guide) == 1, "of the second there was but one best"


@pytest.mark.parametrize(("follows", "node_here"), [(True, "a"), (False, "b")])
def test_a_node_that_scores_less_is_a_difference(follows: bool, node_here: str) -> None:
    objects = [*UNEQUAL, *gang("g", pods=1)]
    alone = decided(objects)
    assert places(alone) == {"g-0": "b"}
    there = moved(alone, g_0="a")
    guide = Guide(wishes_of(there), follows=follows)
    beside = decided(objects, guide)
    assert places(beside) == {"g-0": node_here}
    (found,) = differing(there, beside, guide)
    assert found.choice is not None
    assert (found.choice.node, found.choice.wished) == ("b", "a")
    assert found.choice.scores is not None
    assert found.choice.scores[0] > found.choice.scores[1]
    assert found.choice.words().startswith("b scores")


def test_a_node_that_would_not_do_is_never_taken() -> None:
    objects = [*UNEQUAL, *gang("g", pods=1, cpu="3")]
    alone = decided(objects)
    there = moved(alone, g_0="c")
    guide = Guide(wishes_of(there))
    beside = decided(objects, guide)
    assert places(beside) == {"g-0": "b"}
    (found,) = differing(there, beside, guide)
    assert found.choice is not None
    assert found.choice.words() == "c would not do: Insufficient cpu"


def test_where_one_was_not_bound_here_the_ending_says_why() -> None:
    objects = [node("a", cpu="1"), *gang("g", pods=2)]
    (job,) = {one.job for one in decided([*UNEQUAL, *gang("g", pods=2)]).binds}
    there: list[Decision] = [Bind("default", "g-0", "default/g-0", "a", job)]
    guide = Guide(wishes_of(there))
    beside = decided(objects, guide)
    assert beside.binds == ()
    (found,) = differing(there, beside, guide)
    assert (found.there, found.here, found.choice) == (there[0], None, None)
    assert "allocate: too few of its tasks found room" in guide.endings[job]


def test_without_wishes_it_decides_as_ever() -> None:
    objects = [*UNEQUAL, *gang("g", pods=3)]
    assert decided(objects, Guide({})).digest == decided(objects).digest
