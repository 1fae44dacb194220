"""Small clusters by number, of all that searches look for: what they say is lived through again, and less is tried."""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from pumice.cluster.kernel.fork import Fork
from pumice.questions.whatif import changes
from pumice.questions.whatif.ask import lived, lived_with
from pumice.questions.whatif.changes import nodes_like
from pumice.questions.whatif.naming import belongings, running
from pumice.questions.whatif.search.defragment import StartAnswer, plans
from pumice.questions.whatif.search.searches import searched
from pumice.questions.whatif.search.starting import StartQuestion
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.queues import queue
from tests.pumice.questions.whatif.clusters import BEGAN, CLUSTERS, config_text, parsed, priority_class
from tests.pumice.questions.whatif.test_searches import BIG, exhaustive, fragmented, with_pods_on

WITHIN_S = 5.0
MOST = 2
"""Jobs that end, and moves: of so many every choice there is is tried."""
OTHER = "try"


def drawn(number: int) -> Fork:
    """A queue with a capability or none, jobs of three priorities that fill the nodes, and a gang that waits."""
    chance = random.Random(number)
    names = [f"n{place}" for place in range(chance.randint(1, 4))]
    limited = {"cpu": str(chance.randint(3, 9)), "memory": f"{chance.randint(2, 9)}Gi"}
    capability = {key: limited[key] for key in limited if chance.random() < 0.6}
    objects = [priority_class("low", 5), priority_class("high", 50), queue("q1", capability=capability), queue("q2")]
    objects += [node(name, cpu=str(chance.choice((4, 6))), memory="16Gi") for name in names]
    for place, name in enumerate(names * 2):
        called, value = chance.choice((("low", 5), ("high", 50), (None, 0)))
        objects += gang(
            f"r{place}", pods=1, cpu=str(chance.randint(1, 3)), memory="1Gi", nodes=[name], phase="Running",
            duration="0", queue=chance.choice(("q1", "q2")), priority_class=called, priority=value,
            annotations={"volcano.sh/preemptable": "true"}, grace_s=1,
        )  # fmt: skip
    shape: dict[str, Any] = {"cpu": str(chance.randint(1, 4)), "memory": f"{chance.randint(1, 3)}Gi", "queue": "q1"}
    objects += gang("big", pods=chance.randint(1, 3), priority_class=chance.choice((None, "low")), **shape)
    return Fork(tuple(objects), BEGAN, parsed(config_text(number)))


def starts(fork: Fork, *asked: changes.ForkChange) -> bool:
    return lived_with(fork, asked, WITHIN_S).jobs[BIG].start_s is not None


def again(fork: Fork, answer: StartAnswer) -> None:
    """What was found does, made as a user would; what is less does not."""
    match answer.code:
        case "Nodes":
            assert starts(fork, nodes_like(answer.of[0], answer.amount))
            fewer = range(1, answer.amount) if answer.least else [answer.amount - 1]
            assert not any(starts(fork, nodes_like(answer.of[0], less)) for less in fewer if less)
        case "Capability":
            limits = [each for each in shlex.split(answer.changes[0]) if each != "--set"]
            assert starts(fork, *map(changes.set_field, limits))
            for place, limit in enumerate(limits):
                lower = [*limits[:place], one_less(limit), *limits[place + 1 :]]
                assert not starts(fork, *map(changes.set_field, lower))
        case "Priority":
            assert starts(raised(fork, answer.amount))
            values = {one.get("value", 0) + 1 for one in fork.objects if one["kind"] == "PriorityClass"} | {1}
            assert not any(starts(raised(fork, value)) for value in values if own(fork) < value < answer.amount)
        case "FewerJobs":
            assert starts(without(fork, answer.of))
            jobs = [name for name, one in belongings(fork.objects).items() if running(fork.objects, one)]
            fewer = range(1, min(answer.amount, MOST + 1)) if answer.least else range(0)
            assert not any(starts(without(fork, some)) for less in fewer for some in combinations(jobs, less))
            assert not any(starts(without(fork, some)) for some in combinations(answer.of, answer.amount - 1) if some)
        case code:
            assert code == "Moves"
            moved = {each.split(" from ")[0]: each.split(" to ")[1] for each in answer.changes}
            future = lived(with_pods_on(fork, moved), frozenset(), WITHIN_S)
            assert future.jobs[BIG].start_s is not None


def one_less(limit: str) -> str:
    """A thousandth of a cpu or a byte less."""
    path, _, value = limit.rpartition("=")
    return f"{path}={int(value[:-1]) - 1}m" if value.endswith("m") else f"{path}={int(value) - 1}"


def own(fork: Fork) -> int:
    group = next(obj for obj in fork.objects if (obj["kind"], obj["metadata"]["name"]) == ("PodGroup", "big"))
    return 5 if group["spec"].get("priorityClassName") else 0


def raised(fork: Fork, value: int) -> Fork:
    """With that priority for the gang and its pods."""
    mine = {place for one in [belongings(fork.objects)[BIG]] for place in one.places}

    def on(obj: dict[str, Any]) -> dict[str, Any]:
        more = {"priorityClassName": OTHER} | ({"priority": value} if obj["kind"] == "Pod" else {})
        return {**obj, "spec": {**obj["spec"], **more}}

    objects = [on(obj) if place in mine else obj for place, obj in enumerate(fork.objects)]
    return replace(fork, objects=(*objects, priority_class(OTHER, value)))


def without(fork: Fork, names: Iterable[str]) -> Fork:
    parts = belongings(fork.objects)
    gone = {place for name in names for place in parts[name].places}
    return replace(fork, objects=tuple(obj for place, obj in enumerate(fork.objects) if place not in gone))


def check(fork: Fork) -> list[str]:
    """The codes of the answers, each of which holds."""
    question = StartQuestion(fork, BIG, WITHIN_S)
    if question.starts() is not None:
        return []
    answers = [*searched(question), *plans(question)]
    for answer in answers:
        again(fork, answer)
    return [answer.code for answer in answers]


def codes(numbers: Sequence[int]) -> set[str]:
    return {code for number in numbers for code in check(drawn(number))}


def plan_is_the_least(fork: Fork, most: int = MOST) -> bool:
    """Of up to six nodes: no plan of fewer moves than the one that is told does, of all there are up to `most`."""
    question = StartQuestion(fork, BIG, WITHIN_S)
    if question.starts() is not None:
        return False
    found = [(answer.amount, answer.least) for answer in plans(question)]
    least = exhaustive(question, most)
    assert [amount for amount, _ in found if amount <= most] == ([] if least is None else [least])
    assert all(is_least for _, is_least in found)
    return bool(found)


def test_every_kind_of_answer_holds_when_it_is_tried_again() -> None:
    assert codes((1, 7)) == {"Nodes", "Capability", "Priority", "FewerJobs", "Moves"}


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, CLUSTERS, 25))
def test_every_answer_holds_in_many_clusters(first: int) -> None:
    assert codes(range(first, first + 25)) >= {"Nodes", "Capability", "FewerJobs"}


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, CLUSTERS, 20))
def test_every_plan_is_the_least_in_many_clusters(first: int) -> None:
    """Of three nodes; of more, for which all plans are many, a few."""
    assert sum(plan_is_the_least(fragmented(number, 3)) for number in range(first, first + 20)) > 0
    plan_is_the_least(fragmented(first, 4 + first // 20 % 2))
    plan_is_the_least(fragmented(first, 6), 1)
