"""Machines on one reading: who is told, who is asked, and when they are let be."""

from __future__ import annotations

from collections.abc import Sequence

from pumice.cluster.kernel.turns import AGAIN_MOST, Turns
from pumice.cluster.machine import Machine
from pumice.core.messages.commands import ApiRequest, Get
from pumice.core.messages.events import Mutation
from pumice.core.messages.replies import Accepted, ApiReply
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack, unpack


class Asking(Machine):
    """Asks so many times, then no more."""

    def __init__(self, name: str, times: int, *kinds: str, due: float | None = None) -> None:
        self.kinds = kinds
        self.heard: list[tuple[str, bool]] = []
        self.answers: list[float] = []
        self.steps = 0
        self._name, self._left, self._due = name, times, due

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        del kind, revision
        self.heard.append((obj["metadata"]["name"], deleted))

    def step(self, now: float) -> Sequence[ApiRequest]:
        del now
        self.steps += 1
        self._left -= 1
        return [Get("Pod", "default", self._name)] if self._left >= 0 else ()

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:
        del request, reply
        self.answers.append(now)

    def next_due(self) -> float | None:
        return self._due


def asked(turns: Turns, now: float = 1.0) -> list[str]:
    """Who asked, in order; every answer takes a second."""
    found: list[str] = []
    for (request,) in turns.rounds(now):
        assert isinstance(request, Get)
        found.append(request.name)
        now += 1.0
        turns.answered([Accepted(0)], now)
    return found


def change(revision: int, event: str, kind: str, name: str) -> Mutation:
    return Mutation(revision, event, kind, "", name, pack({"kind": kind, "metadata": {"name": name}}))


def test_rounds_ask_those_again_that_have_asked() -> None:
    machines = Asking("a", 2, "Pod"), Asking("b", 0, "Pod"), Asking("c", 1, "Pod")
    turns = Turns(machines)
    assert asked(turns) == ["a", "c", "a"]
    assert [machine.steps for machine in machines] == [3, 1, 2]
    assert [machine.answers for machine in machines] == [[2.0, 4.0], [], [3.0]]
    assert not turns.endless


def test_a_machine_that_never_rests_is_given_up() -> None:
    turns = Turns([Asking("a", 2 * AGAIN_MOST, "Pod")])
    assert len(asked(turns)) == AGAIN_MOST
    assert turns.endless


def test_changes_reach_those_who_watch_the_kind_and_what_is_known_is_no_news() -> None:
    pods, both = Asking("a", 0, "Pod"), Asking("b", 0, "Node", "Pod")
    turns = Turns([pods, both])
    turns.tell([change(3, "ADDED", "Node", "n"), change(4, "MODIFIED", "Pod", "p")], unpack, since=3)
    turns.tell([change(2, "DELETED", "Node", "gone")], unpack, since=4)
    assert pods.heard == [("p", False)]
    assert both.heard == [("p", False), ("gone", True)]
    assert turns.kinds == ("Pod", "Node")


def test_the_earliest_time_is_due() -> None:
    assert Turns([Asking("a", 0, "Pod")]).next_due() is None
    assert Turns([Asking("a", 0, "Pod", due=7.0), Asking("b", 0, "Pod", due=5.0)]).next_due() == 5.0
