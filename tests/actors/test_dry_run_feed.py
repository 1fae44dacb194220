"""Replicas: told by deltas what a session began with and what was done to it, they have the same columns, bit by bit,
and find the same.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.dry_run_child import Child
from actors.dry_run_feed import Feed, Openings, Tag, can_follow
from core.actions.dry_run import DryRun
from core.actions.preempt import steps
from core.cycle import Carry, Clock, open_session, run_action
from core.errors import ReplicaError
from core.messages.commands import Chunk
from core.messages.replies import Candidates, DryRunFailed
from core.plugins.user import UserPlugin
from core.replica.replica import Follow, Replica
from core.session.session import Session
from core.state.view import View
from storage import codec
from tests.core.actions.crowds import TIERS, classes, crowds, running, waiting, with_arguments
from tests.core.plugins.world import configuration
from tests.kit import Object, gang, node, pod, queue

AWARE = {"enableTopologyAwarePreemption": True, "minCandidateNodesPercentage": 100}
CONFIGS = [
    with_arguments(configuration(*tiers), "preempt", **AWARE)
    for tiers in (TIERS, (["priority", "gang"], ["predicates", "proportion"]), (["priority"], ["drf", "capacity"]))
]
LONELY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
        ]
    }
}
COLUMNS = {
    "nodes": ("idle", "used", "releasing", "pipelined", "future"),
    "jobs": ("counts", "allocated_at", "phase", "status", "node"),
    "kube": ("pods", "requested", "nonzero"),
}


def recorded(view: View, config: Any, number: int) -> Session:
    clock = Clock(number, 1_767_225_600.0 + number)
    return open_session(view.snapshot(), config, clock, Carry(), recorded=True)


def columns_of(session: Session) -> dict[str, list[bytes]]:
    """Every number the session keeps, as bytes: equal means equal to the last bit."""
    found: dict[str, list[bytes]] = {}
    for part, names in COLUMNS.items():
        for name in names:
            column = getattr(getattr(session, part), name)
            found[f"{part}.{name}"] = [np.asarray(line).tobytes() for line in column]
    return found


class Beside:
    """A child, told everything through bytes, and what came of it."""

    def __init__(self) -> None:
        self.feed = Feed(Openings())
        self.child = Child()
        self.frames: list[Tag] = []
        self.sizes: dict[Tag, int] = {}

    def found(self, dry_run: DryRun, first: int, last: int) -> tuple[tuple[int, bytes], ...]:
        for tag, body in self.feed.frames(dry_run):
            self.frames.append(tag)
            self.sizes[tag] = len(body)
            assert self.child.told(tag, body) is None
        answer = self.child.told(Tag.CHUNK, codec.encode(Chunk(1, 0, "", b"", first, last, dry_run.want)))
        assert answer is not None
        reply = codec.decode(answer, Candidates | DryRunFailed)
        assert isinstance(reply, Candidates), reply
        return reply.found

    @property
    def session(self) -> Session:
        session = getattr(getattr(self.child, "_replica"), "_session")  # noqa: B009
        assert isinstance(session, Session)
        return session


def preempt_beside(session: Session, beside: Beside) -> int:
    """Run the action, with every row tried here and there; how many dry runs there were."""
    asked, count, action = None, 0, steps(session)
    try:
        asked = next(action)
        while True:
            count += 1
            rows = len(asked.nodes)
            cut = rows // 2
            findings = [*beside.found(asked, 0, cut), *beside.found(asked, cut, rows)]
            assert tuple(findings) == (*asked.try_rows(0, cut), *asked.try_rows(cut, rows))
            assert columns_of(beside.session) == columns_of(session)
            asked = action.send(asked.read(findings))
    except StopIteration:
        return count


def view_of(objects: list[Object]) -> View:
    view = View()
    for obj in objects:
        view.apply("ADDED", obj)
    return view


@settings(max_examples=60)
@given(crowds(), crowds(), st.sampled_from(CONFIGS), st.booleans())
def test_a_replica_is_the_session_again(objects: list[Object], later: list[Object], config: Any, lonely: bool) -> None:
    """Two cycles: enqueue and allocate change the session before its dry runs, events the view between the cycles."""
    if lonely:
        objects = [*objects, *running("lonely", ["n0"], queue="q", cpu="500m", affinity=LONELY, labels={"app": "x"})]
    view, beside = view_of([*objects, *gang("later", pods=1, queue="q")]), Beside()
    for number in range(2):
        session = recorded(view, config, number)
        for action in ("enqueue", "allocate"):
            run_action(session, action)
        preempt_beside(session, beside)
        pods = [obj for obj in objects if obj["kind"] == "Pod"]
        for obj in [*pods[::3], *later]:
            view.apply("DELETED" if obj in pods else "ADDED", obj)


def test_little_is_said_when_little_changed(crowd: list[Object]) -> None:
    view, beside = view_of(crowd), Beside()
    assert preempt_beside(recorded(view, CONFIGS[0], 1), beside) == 3
    whole = beside.sizes[Tag.BEGIN]
    assert beside.frames == [Tag.BEGIN, *[Tag.FOLLOW, Tag.QUESTION] * 3]
    view.apply("ADDED", pod("alone", node="n1", cpu="1"))
    preempt_beside(recorded(view, CONFIGS[0], 2), beside)
    assert beside.frames.count(Tag.BEGIN) == 2
    assert beside.sizes[Tag.BEGIN] < whole / 3


def test_what_is_told_twice_is_put_into_bytes_once(crowd: list[Object]) -> None:
    session, openings = recorded(view_of(crowd), CONFIGS[0], 1), Openings()
    asked = next(steps(session))
    frames = [dict(Feed(openings).frames(asked))[Tag.BEGIN] for _ in range(2)]
    assert frames[0] is frames[1]


def test_a_replica_knows_what_it_was_not_told() -> None:
    with pytest.raises(ReplicaError, match="no session"):
        Child().told(Tag.FOLLOW, pickle.dumps(Follow([], {})))
    with pytest.raises(ReplicaError, match="no dry run"):
        Replica().try_rows(0, 1)


def test_plugins_of_users_have_no_replica(crowd: list[Object]) -> None:
    view = view_of(crowd)
    followed = next(steps(recorded(view, CONFIGS[0], 1)))
    assert can_follow(followed)
    followed.session.plugins["mine"] = UserPlugin("mine", lambda _: pytest.fail("never built"), {})
    assert not can_follow(followed)
    assert not can_follow(next(steps(open_session(view.snapshot(), CONFIGS[0], Clock(1, 0.0), Carry()))))


@pytest.fixture
def crowd() -> list[Object]:
    """Three who wait, on a full house of 40 nodes."""
    names = [f"n{i}" for i in range(40)]
    nodes = [node(name, cpu="4") for name in names]
    full = running("old", [*names, *names], least=0, queue="q", cpu="2")
    return [*nodes, queue("q"), *classes(), *full, *waiting("new", 3, queue="q", cpu="3")]
