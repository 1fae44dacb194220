"""What `explain` says would help, in small clusters by number: it is done as the words say, and lived through."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from msgspec import structs

from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.life import Life
from pumice.core.objects.metadata import Object
from pumice.core.quantity import parse_quantity
from pumice.core.session.carry import Carry, CycleClock
from pumice.questions.explain.account import Helps
from pumice.questions.explain.advice.advise import advise
from pumice.questions.explain.scene import Scene
from pumice.questions.oneshot.cycles import fill
from pumice.questions.whatif import changes
from pumice.questions.whatif.ask import lived_with
from pumice.questions.whatif.changes import changed
from pumice.questions.whatif.naming import belongings
from tests.pumice.questions.whatif.clusters import CLUSTERS
from tests.pumice.questions.whatif.test_every_answer import drawn
from tests.pumice.questions.whatif.test_searches import BIG

WAITED_S = 3.0
WITHIN_S = 60.0
CAPABILITY = re.compile(r"queue (?P<queue>\S+): capability (?P<limits>.+)")
ROOM = re.compile(r"(?P<amounts>.+) more on (?:node (?P<node>\S+)|each of (?P<count>\d+) nodes \((?P<nodes>.+)\))")
PRIORITY = re.compile(r"priority class (?P<name>\S+)")
ACTION = re.compile(r"action (?P<name>\S+) in the configuration")
IN_ORDER = ("enqueue", "allocate", "preempt", "reclaim", "backfill")
WEIGHT = re.compile(r"queue (?P<queue>\S+): weight (?P<weight>\d+) instead of \d+")
MORE = re.compile(r"(?P<count>\d+) more nodes? like (?P<name>\S+)")
FEWER = re.compile(r"minAvailable (?P<number>\d+) instead of \d+")


def waiting(number: int) -> Fork:
    """A cluster that has been lived in for a while."""
    life = Life(drawn(number), 0, lambda mutation, at: None, lambda result, at: None)
    life.run(WAITED_S)
    return life.fork()


def helps(fork: Fork) -> list[Helps]:
    """What would help the gang, as `explain` has it."""
    objects = list(fork.objects)
    clock, carry = CycleClock(fork.cycle + 1, fork.now, 0), Carry.from_dict(dict(fork.carry))
    scene = Scene(fill(objects), fork.config, clock, carry, objects=lambda: objects)
    return advise(scene, "podgroup", BIG, 30.0).data


def done(fork: Fork, words: str) -> Fork:
    """The change that these words name, made by hand."""
    if found := CAPABILITY.fullmatch(words):
        limits = [each.split(" ")[:2] for each in found["limits"].split(", ")]
        asked = [changes.set_field(f'queue/{found["queue"]}:spec.capability["{key}"]={value}') for key, value in limits]
        return changed(fork, asked)
    if found := ROOM.fullmatch(words):
        names = [found["node"]] if found["node"] else found["nodes"].split(", ")
        if names[-1] == "…":  # no more are named than three
            names = [obj["metadata"]["name"] for obj in fork.objects if obj["kind"] == "Node"]
            assert len(names) == int(found["count"])
        more = [each.split(" ") for each in re.split(" and ", found["amounts"])]
        return edited(fork, "Node", lambda obj: with_more(obj, more) if obj["metadata"]["name"] in names else obj)
    if found := PRIORITY.fullmatch(words):
        return with_class(fork, found["name"])
    if found := WEIGHT.fullmatch(words):
        return changed(fork, [changes.set_field(f"queue/{found['queue']}:spec.weight={found['weight']}")])
    if found := ACTION.fullmatch(words):
        actions = {*fork.config.actions, found["name"]}
        config = structs.replace(fork.config, actions=tuple(each for each in IN_ORDER if each in actions))
        return replace(fork, config=config)
    if found := MORE.fullmatch(words):
        return changed(fork, [changes.nodes_like(found["name"], int(found["count"]))])
    found = FEWER.fullmatch(words)
    assert found, f"nobody here knows how to do: {words}"
    least = int(found["number"])

    def fewer(obj: Object) -> Object:
        mine = obj["metadata"]["name"] == BIG.partition("/")[2]
        return {**obj, "spec": {**obj["spec"], "minMember": least}} if mine else obj

    return edited(fork, "PodGroup", fewer)


def edited(fork: Fork, kind: str, on: Callable[[Object], Object]) -> Fork:
    return replace(fork, objects=tuple([on(obj) if obj["kind"] == kind else obj for obj in fork.objects]))


def with_more(node: Object, more: Sequence[Sequence[str]]) -> Object:
    """A node with so much more to give."""
    status = dict(node["status"])
    for part in ("capacity", "allocatable"):
        amounts = dict(status.get(part) or {})
        for value, key in more:
            amounts[key] = f"{parse_quantity(amounts[key]).milli_value() + parse_quantity(value).milli_value()}m"
        status[part] = amounts
    return {**node, "status": status}


def with_class(fork: Fork, name: str) -> Fork:
    """The gang and its pods are of that PriorityClass."""
    mine = set(belongings(fork.objects)[BIG].places)
    value = next(o["value"] for o in fork.objects if (o["kind"], o["metadata"]["name"]) == ("PriorityClass", name))

    def on(obj: Object) -> Object:
        more = {"priorityClassName": name} | ({"priority": value} if obj["kind"] == "Pod" else {})
        return {**obj, "spec": {**obj["spec"], **more}}

    return replace(fork, objects=tuple([on(o) if place in mine else o for place, o in enumerate(fork.objects)]))


def check(number: int) -> int:
    """How many changes would help; each does."""
    fork = waiting(number)
    if lived_with(fork, [], 1.0).jobs[BIG].start_s is not None:
        return 0
    told = helps(fork)
    for each in told:
        after = fork
        for words in each["changes"]:
            after = done(after, words)
        future = lived_with(after, [], WITHIN_S).jobs[BIG]
        assert future.bound >= each["fit"], (each, future)
        assert (each["fit"] == 0) or future.start_s is not None, (each, future)
    return len(told)


@pytest.mark.parametrize("number", [0, 1, 6, 7])
def test_what_would_help_does(number: int) -> None:
    assert check(number) > 0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, CLUSTERS, 25))
def test_what_would_help_does_in_many_clusters(first: int) -> None:
    assert sum(check(number) for number in range(first, first + 25)) > 10
