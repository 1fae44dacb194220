"""A watch behind a bad network: what is broken, gone or replayed, and that it is so once at its occasion."""

from __future__ import annotations

import pytest

from pumice.actors.api_server.faults.faulty_server import REPLAYED, FaultyLog
from pumice.actors.api_server.faults.network import Network
from pumice.actors.api_server.faults.strikes import Fault, ListedFaults
from pumice.actors.errors import ActorFailedError
from pumice.actors.runtime.actor import Context
from pumice.actors.runtime.clock import RealClock
from pumice.cluster.api.watch import RevisionLog
from pumice.core.messages.events import Mutation

KINDS = ("Pod", "Node", "Queue")


def log_with(*faults: Fault, capacity: int = 100) -> tuple[FaultyLog, Network]:
    log = RevisionLog(capacity)
    for revision in range(1, 31):
        log.append(Mutation(revision, "ADDED", "Pod", "default", f"p{revision}", b""), frozenset({"Pod"}))
    log.publish(30)
    network = Network(Context(RealClock()))
    return FaultyLog(log, ListedFaults(faults), network), network


def revisions(log: FaultyLog, since: int) -> list[int]:
    return [event.revision for event in log.read(since, KINDS).events]


def test_a_broken_watch_is_whole_the_next_time() -> None:
    log, _ = log_with(Fault("watch-broken", "watch Pod+Node #2"))
    assert revisions(log, 28) == [29, 30]
    with pytest.raises(ActorFailedError, match="the connection broke"):
        log.read(28, KINDS)
    assert revisions(log, 28) == [29, 30]


def test_one_that_is_gone_says_up_to_where() -> None:
    log, _ = log_with(Fault("watch-gone", "watch Pod+Node #1"))
    found = log.read(28, KINDS)
    assert (found.gone, found.revision, found.events) == (True, 30, ())
    assert revisions(log, 28) == [29, 30]


def test_a_replayed_one_goes_back_as_far_as_the_log_reaches() -> None:
    log, _ = log_with(Fault("watch-replayed", "watch Pod+Node #1"))
    assert revisions(log, 28) == list(range(28 - REPLAYED + 1, 31))
    short, _ = log_with(Fault("watch-replayed", "watch Pod+Node #1"), capacity=7)
    first = revisions(short, 28)
    assert 28 - REPLAYED + 1 < first[0] < 28
    assert first == list(range(first[0], 31))


@pytest.mark.anyio
async def test_a_crash_is_handed_to_the_network_and_the_watch_goes_on() -> None:
    log, network = log_with(Fault("crash", "watch Pod+Node #1", amount=3.0, target="cache"))
    assert revisions(log, 28) == [29, 30]
    assert network.crashes == [("cache", 3)]
