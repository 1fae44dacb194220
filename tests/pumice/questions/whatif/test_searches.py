"""What the searches find lets the job start, which is found out by living through it; and less does not."""

from __future__ import annotations

import pickle
import random
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import pytest

from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.life import Life
from pumice.errors import InputError
from pumice.executors import WorkerDiedError
from pumice.questions.whatif import changes
from pumice.questions.whatif.ask import lived, lived_with
from pumice.questions.whatif.changes import ForkChange, changed, nodes_like
from pumice.questions.whatif.naming import belongings
from pumice.questions.whatif.search.advice import advised, answered
from pumice.questions.whatif.search.defragment import Move, StartAnswer, plans, stock_of, works
from pumice.questions.whatif.search.searches import fewer_jobs, more_nodes, searched
from pumice.questions.whatif.search.starting import StartQuestion, known_job, starts_s
from pumice.work import WorkBudget, WorkOverError
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import node
from tests.kit.queues import queue
from tests.pumice.questions.whatif.clusters import BEGAN, CLUSTERS, config_text, contested, fork, parsed, priority_class

WITHIN_S = 5.0
BIG = "default/big"
ON_ONE_NODE = r"(\d+) cpu more on node (\w+)"


def fragmented(number: int, nodes: int) -> Fork:
    """Nodes of 4 cpu with small pods all over, and a gang for which whole nodes are missing."""
    chance = random.Random(number)
    names = [f"n{place}" for place in range(nodes)]
    objects = [*(node(name, cpu="4") for name in names), queue("q1")]
    for place, name in enumerate(names):
        left = 4
        for pod in range(3):
            size = chance.choice((1, 1, 2))
            if left - size < (1 if chance.random() < 0.6 else 0):
                break
            left -= size
            running: dict[str, Any] = {"nodes": [name], "phase": "Running", "duration": "0", "queue": "q1"}
            objects += gang(f"r{place}{pod}", pods=1, cpu=str(size), **running)
    objects += gang("big", pods=chance.randint(1, 2), cpu=str(chance.choice((3, 4))), queue="q1", duration="10s")
    return Fork(tuple(objects), BEGAN, parsed(config_text(0)))


def waiting(number: int) -> Iterator[tuple[Fork, str]]:
    """The jobs of a drawn cluster that do not start by themselves."""
    cluster = fork(number)
    for job, future in lived_with(cluster, [], WITHIN_S).jobs.items():
        if future.start_s is None:
            yield cluster, job


def check(cluster: Fork, job: str) -> list[str]:
    """Every answer again, from the start; of what is the least, everything smaller. The codes of the answers."""
    question = StartQuestion(cluster, job, WITHIN_S)
    assert question.starts() is None
    answers = [*searched(question), *plans(question)]
    for answer in answers:
        _again(cluster, job, answer)
    return [answer.code for answer in answers]


def _again(cluster: Fork, job: str, answer: StartAnswer) -> None:
    match answer.code:
        case "Nodes":
            (name,) = answer.of
            does = [_start(cluster, nodes_like(name, n), job) for n in range(answer.amount + 1)]
            assert does[-1] is not None
            assert does[-2] is None
            if answer.least:
                assert does[:-1] == [None] * answer.amount
        case "FewerJobs":
            parts = belongings(cluster.objects)
            assert _without(cluster, [place for name in answer.of for place in parts[name].places], job) is not None
            for less in combinations(answer.of, len(answer.of) - 1):
                assert _without(cluster, [place for name in less for place in parts[name].places], job) is None
        case "Moves":
            moved = {each.split(" from ")[0]: each.split(" to ")[1] for each in answer.changes}
            assert lived(with_pods_on(cluster, moved), frozenset(), WITHIN_S).jobs[job].start_s is not None
        case _:
            assert answer.starts_s <= WITHIN_S


def with_pods_on(cluster: Fork, targets: dict[str, str]) -> Fork:
    """Put pods elsewhere by hand: the api moves none."""
    objects = list[Any]()
    for obj in cluster.objects:
        target = (
            targets.get(f"{obj['metadata'].get('namespace')}/{obj['metadata']['name']}")
            if obj["kind"] == "Pod"
            else None
        )
        objects.append(obj if target is None else {**obj, "spec": {**obj["spec"], "nodeName": target}})
    return replace(cluster, objects=tuple(objects))


def _start(cluster: Fork, change: ForkChange, job: str) -> float | None:
    """None for a job that has not even pods."""
    found = lived_with(cluster, [change], WITHIN_S).jobs.get(job)
    return None if found is None else found.start_s


def _without(cluster: Fork, places: Sequence[int], job: str) -> float | None:
    gone = set(places)
    kept = tuple(obj for place, obj in enumerate(cluster.objects) if place not in gone)
    return starts_s(replace(cluster, objects=kept), job, WITHIN_S)


@pytest.mark.parametrize("number", [2, 14, 19])
def test_answers_hold_when_they_are_tried_again(number: int) -> None:
    for cluster, job in waiting(number):
        assert check(cluster, job)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, CLUSTERS, 25))
def test_answers_hold_in_many_clusters(first: int) -> None:
    for number in range(first, first + 25):
        for cluster, job in waiting(number):
            check(cluster, job)
        if number % 4 == 0 and starts_s(fragmented(number, 3 + number % 3), BIG, WITHIN_S) is None:
            check(fragmented(number, 3 + number % 3), BIG)


def test_a_queue_is_given_just_enough() -> None:
    objects = (node("n0", cpu="8"), queue("q1", capability={"cpu": "3"}), *gang("big", pods=3, cpu="2", queue="q1"))
    question = StartQuestion(Fork(objects, BEGAN, parsed(config_text(0))), BIG, WITHIN_S)
    (answer,) = searched(question)
    assert (answer.code, answer.amount, answer.least) == ("Capability", 1, True)
    assert answer.changes == ("--set 'queue/q1:spec.capability[\"cpu\"]=6'",)
    told = changes.set_field('queue/q1:spec.capability["cpu"]=6')
    assert question.starts(told) == answer.starts_s
    assert question.starts(changes.set_field('queue/q1:spec.capability["cpu"]=5999m')) is None


def test_each_resource_of_a_queue_is_raised_no_further_than_it_must_be() -> None:
    limits = {"cpu": "7", "memory": "1Gi", "nvidia.com/gpu": "1"}
    nodes = (node("n0", cpu="8", memory="16Gi", gpus=8), queue("q1", capability=limits))
    objects = (*nodes, *gang("big", pods=3, queue="q1", cpu="2", memory="3Gi", gpus=1))
    question = StartQuestion(Fork(objects, BEGAN, parsed(config_text(0))), BIG, WITHIN_S)
    (answer,) = searched(question)
    assert (answer.code, answer.amount, answer.least) == ("Capability", 2, False)
    memory, gpus = 9 * 2**30, 3
    paths = [f'queue/q1:spec.capability["{key}"]' for key in ("memory", "nvidia.com/gpu")]
    assert answer.changes == (f"--set '{paths[0]}={memory}' --set '{paths[1]}={gpus}'",)
    for less in ((memory - 1, gpus), (memory, gpus - 1)):
        given = [changes.set_field(f"{path}={value}") for path, value in zip(paths, less, strict=True)]
        assert question.starts(*given) is None


def test_the_lowest_priority_that_takes_the_place() -> None:
    classes = [priority_class("low", 5), priority_class("high", 50)]
    running = [
        each
        for place, (name, value) in enumerate((("high", 50), ("low", 5)))
        for each in gang(
            f"r{place}", pods=1, cpu="4", nodes=[f"n{place}"], phase="Running", priority_class=name, priority=value,
            annotations={"volcano.sh/preemptable": "true"}, duration="0", grace_s=1,
        )
    ]  # fmt: skip
    objects = (*classes, node("n0", cpu="4"), node("n1", cpu="4"), *running, *gang("big", pods=1, cpu="4"))
    question = StartQuestion(Fork(objects, BEGAN, parsed(config_text(1))), BIG, WITHIN_S)
    found = {answer.code: answer for answer in searched(question)}
    assert found["Priority"].amount == 6
    assert (found["FewerJobs"].amount, found["FewerJobs"].of) == (1, ("default/r0",))
    assert found["Nodes"].amount == 1


# --- defragmentation


def exhaustive(question: StartQuestion, most: int) -> int | None:
    """The least number of moves that works, of all there are, every one lived through."""
    stock = stock_of(question)
    for size in range(1, most + 1):
        for chosen in combinations(sorted(stock.pods), size):
            others = [[name for name in stock.free if name != stock.pods[pod][0]] for pod in chosen]
            for targets in product(*others):
                moves = [Move(pod, stock.pods[pod][0], target) for pod, target in zip(chosen, targets, strict=True)]
                if works(question, moves) is not None:
                    return size
    return None


@pytest.mark.parametrize("number", [0, 3, 7])
def test_a_plan_on_few_nodes_is_the_least(number: int) -> None:
    question = StartQuestion(fragmented(number, 3), BIG, WITHIN_S)
    if question.starts() is not None:
        return
    found = list(plans(question))
    least = exhaustive(question, 2)
    assert [answer.amount for answer in found if answer.amount <= 2] == ([] if least is None else [least])
    assert all(answer.least for answer in found)


def test_a_plan_on_many_nodes_says_how_far_it_may_be_from_the_least() -> None:
    question = StartQuestion(fragmented(11, 20), BIG, WITHIN_S)
    assert question.starts() is None
    (answer,) = plans(question)
    assert 1 <= answer.bound <= answer.amount
    assert answer.least == (answer.bound == answer.amount)
    _again(question.fork, BIG, answer)


def test_a_node_that_would_not_take_a_pod_is_no_place_for_it() -> None:
    tainted = node("n1", cpu="4", taints=[{"key": "x", "effect": "NoSchedule"}])
    small = gang("r", pods=1, cpu="1", nodes=["n0"], phase="Running", duration="0")
    objects = (node("n0", cpu="4"), tainted, *small, *gang("big", pods=1, cpu="4"))
    question = StartQuestion(Fork(objects, BEGAN, parsed(config_text(0))), BIG, WITHIN_S)
    assert stock_of(question).pods
    assert list(plans(question)) == []


def test_jobs_are_known_by_their_names() -> None:
    job = vcjob("train", job_task(replicas=1, cpu="1"))
    cluster = Fork((node("n0"), job, *gang("big", pods=1)), BEGAN, parsed(config_text(0)))
    assert known_job(cluster, "train") == "default/train"
    assert known_job(cluster, "default/big") == BIG
    assert starts_s(cluster, "default/train", WITHIN_S) is not None
    with pytest.raises(InputError, match="near: default/train"):
        known_job(cluster, "trainn")


class Elsewhere(Executor):
    """Does immediately what is asked, as another process would: from bytes. Dies over every third."""

    def __init__(self) -> None:
        self.asked = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.asked += 1
        future: Future[Any] = Future()
        if self.asked % 3 == 0:
            future.set_exception(WorkerDiedError())
        else:
            again, arguments, named = pickle.loads(pickle.dumps((fn, args, kwargs)))
            future.set_result(again(*arguments, **named))
        return future


@pytest.mark.parametrize("number", range(3))
def test_the_answers_are_the_same_wherever_they_are_found(number: int) -> None:
    cluster, elsewhere = fragmented(number, 3), Elsewhere()
    here = StartQuestion(cluster, BIG, WITHIN_S)
    there = StartQuestion(cluster, BIG, WITHIN_S, executor=elsewhere)
    if here.starts() is not None:
        return
    assert [*searched(here)] == [*searched(there)]
    there.starts()
    assert (here.tries, elsewhere.asked > 3) == (there.tries, True)


def test_a_change_that_two_searches_find_is_told_once() -> None:
    limited = queue("q1", capability={"cpu": "2", "memory": "1Gi"})
    objects = (node("n0", cpu="8"), limited, *gang("big", pods=4, cpu="1", memory="1Gi", queue="q1"))
    question = StartQuestion(Fork(objects, BEGAN, parsed(config_text(0))), BIG, WITHIN_S)
    codes = {answer.changes[0]: (answer.code, answer.least) for answer in answered(question)}
    raised = [words for words in codes if "cpu" in words]
    assert [codes[words][0] for words in raised] == ["Capability"]


def test_advice_is_the_least_where_one_less_fails_in_a_future() -> None:
    """Of 4 cpu that are missing on the node, 3 do not let it start."""
    small = gang("small", pods=1, cpu="1", queue="q1", nodes=["n0"], phase="Running", duration="0")
    objects = (node("n0", cpu="4"), queue("q1"), *small, *gang("big", pods=1, cpu="7", queue="q1"))
    question = StartQuestion(Fork(objects, BEGAN, parsed(config_text(0))), BIG, WITHIN_S)
    (found,) = [answer for answer in answered(question) if answer.code == "Change"]
    assert (found.changes, found.least) == (("4 cpu more on node n0",), True)
    assert len([words for words in question.made if "more on node n0" in words[0]]) == 2


def later(cluster: Fork, seconds: float) -> Fork:
    life = Life(cluster, 0, lambda mutation, at: None, lambda result, now: None)
    life.run(seconds)
    return life.fork()


def by_hand(cluster: Fork, words: str) -> list[ForkChange]:
    """More cpu on one node, as a user would set it."""
    more, name = re.fullmatch(ON_ONE_NODE, words).groups()  # type: ignore[union-attr]
    (given,) = (obj for obj in cluster.objects if (obj["kind"], obj["metadata"]["name"]) == ("Node", name))
    amounts = {part: int(given["status"][part]["cpu"]) + int(more) for part in ("allocatable", "capacity")}
    return [changes.set_field(f"node/{name}:status.{part}.cpu='{cpu}'") for part, cpu in amounts.items()]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_advice_starts_a_job_when_whatif_does(number: int) -> None:
    """Jobs compete, and evictions are under way: a moment more or less decides who gets the room."""
    cluster, compared = later(contested(number), 4.0 + number), 0
    for job, future in lived_with(cluster, [], WITHIN_S).jobs.items():
        question = StartQuestion(cluster, job, WITHIN_S, work=WorkBudget.of_seconds(5))
        if future.start_s is None and question.starts() is None:
            with suppress(WorkOverError):
                for answer in advised(question):
                    if re.fullmatch(ON_ONE_NODE, answer.changes[0]):
                        full = lived_with(cluster, by_hand(cluster, answer.changes[0]), WITHIN_S)
                        assert full.jobs[job].start_s == answer.starts_s
                        compared += 1
    assert compared


@pytest.mark.parametrize("number", [0, 1])
def test_a_search_starts_a_job_when_whatif_does(number: int) -> None:
    cluster = later(contested(number), 4.0 + number)
    for job, future in lived_with(cluster, [], WITHIN_S).jobs.items():
        question = StartQuestion(cluster, job, WITHIN_S)
        if future.start_s is None and question.starts() is None:
            for answer in more_nodes(question, ["n0"]):
                full = lived_with(cluster, [nodes_like("n0", answer.amount)], WITHIN_S)
                assert full.jobs[job].start_s == answer.starts_s


def tainted() -> tuple[dict[str, Any], ...]:
    closed = node("n0", cpu="4", taints=[{"key": "closed", "value": "yes", "effect": "NoSchedule"}])
    return closed, queue("q1"), vcjob("big", job_task(replicas=1, cpu="1"), queue="q1")


@pytest.mark.parametrize(("within_s", "starts"), [(5.0, [0.39]), (0.3, [])])
def test_a_change_of_pods_still_to_make_counts_from_the_question(within_s: float, starts: list[float]) -> None:
    """The pods exist after three periods, of 130 ms."""
    question = StartQuestion(Fork(tainted(), BEGAN, parsed(config_text(0))), BIG, within_s)
    found = [answer for answer in answered(question) if answer.changes[0].startswith("tolerate")]
    assert [answer.starts_s for answer in found] == starts


def test_advice_about_an_assumed_queue_holds_from_the_beginning() -> None:
    """Nobody gave the queue `default`: it is there all the same."""
    held = gang("held", pods=4, cpu="1", queue="q1", nodes=["n0"] * 4, phase="Running", duration="0")
    objects = (node("n0", cpu="4"), queue("q1"), *held, *gang("big", pods=3, cpu="1", queue="default"))
    cluster = Fork(objects, BEGAN, parsed(config_text(2)))
    found = {answer.changes[0]: answer.starts_s for answer in advised(StartQuestion(cluster, BIG, WITHIN_S))}
    given = replace(cluster, objects=(*objects, queue("default", weight=3)))
    assert found["queue default: weight 3 instead of 1"] == starts_s(given, BIG, WITHIN_S)


def test_a_search_for_a_job_that_comes_later_answers() -> None:
    """It has no objects yet that could be changed."""
    coming = [(0.2, obj) for obj in gang("big", pods=1, cpu="7", queue="q1")]
    cluster = Fork((node("n0", cpu="4"), queue("q1")), BEGAN, parsed(config_text(0)), later=tuple(coming))
    assert [answer.code for answer in answered(StartQuestion(cluster, BIG, WITHIN_S))] == ["Change"]


def test_jobs_that_end_leave_earlier_changes_in_place() -> None:
    """The api judges the changed object, wherever it stands when others have gone."""
    small = gang("small", pods=1, cpu="3", queue="q1", nodes=["n0"], phase="Running", duration="0")
    objects = (node("n0", cpu="4"), queue("q1"), *small, *gang("big", pods=1, cpu="4", queue="q1"))
    cluster = later(Fork(objects, BEGAN, parsed(config_text(0))), 1.0)
    asked = changed(cluster, [changes.set_field("podgroup/big:spec.minMember=1")])
    (answer,) = fewer_jobs(StartQuestion(asked, BIG, WITHIN_S))
    assert answer.of == ("default/small",)
    gone = asked.without(belongings(asked.objects)["default/small"].places)
    assert [gone.objects[place]["metadata"]["name"] for place in gone.before] == ["big"]
