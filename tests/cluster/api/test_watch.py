"""The revision log: what a watcher sees, and when it must list again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.api.watch import RevisionLog
from pumice.core.messages.commands import BindPod, Create, Delete, Patch
from pumice.core.messages.events import Mutation
from pumice.core.messages.replies import Accepted, Listing
from pumice.storage.codec import pack, unpack
from tests.actors.cluster import Cluster
from tests.kit.pods import pod


def change(revision: int, kind: str = "Pod", *parts: str) -> tuple[Mutation, frozenset[str]]:
    return Mutation(revision, "ADDED", kind, "default", f"p{revision}", b""), frozenset({kind, *parts})


def log_of(*revisions: int, capacity: int = 100) -> RevisionLog:
    log = RevisionLog(capacity)
    for revision in revisions:
        log.append(*change(revision))
        log.publish(revision)
    return log


def test_changes_after_a_revision() -> None:
    reply = log_of(1, 2, 3).read(1)
    assert [event.revision for event in reply.events] == [2, 3]
    assert (reply.revision, reply.gone, reply.more) == (3, False, False)


@given(st.sets(st.integers(1, 40), min_size=1), st.integers(0, 40))
def test_gaps_between_revisions_hide_nothing(revisions: set[int], since: int) -> None:
    known = sorted(revisions)
    reply = log_of(*known).read(min(since, known[-1]))
    assert [event.revision for event in reply.events] == [each for each in known if each > since]


def test_the_limit_is_said() -> None:
    log = log_of(1, 2, 3)
    first = log.read(0, limit=2)
    assert ([event.revision for event in first.events], first.revision, first.more) == ([1, 2], 2, True)
    assert [event.revision for event in log.read(first.revision, limit=2).events] == [3]


def test_other_kinds_move_the_revision_on() -> None:
    log = log_of(1)
    log.append(*change(2, "Node"))
    log.publish(2)
    reply = log.read(1, ("Pod",))
    assert (reply.events, reply.revision) == ((), 2)


def test_nothing_is_seen_before_it_is_published() -> None:
    log = log_of(1)
    log.append(*change(2))
    assert log.read(1).events == ()
    assert log.read(1).revision == 1
    log.publish(2)
    assert [event.revision for event in log.read(1).events] == [2]


@pytest.mark.parametrize(("since", "gone"), [(0, True), (39, True), (74, True), (101, True), (100, False), (90, False)])
def test_what_has_fallen_off_is_gone_and_so_is_the_future(since: int, gone: bool) -> None:
    assert log_of(*range(1, 101), capacity=20).read(since).gone is gone


def test_a_part_hears_of_what_concerns_it() -> None:
    log = RevisionLog()
    for event, concerned in (change(1), change(2, "Pod", "Pod:placed"), change(3, "Node"), change(4, "Pod")):
        log.append(event, concerned)
    assert [log.head(("Pod:placed",)), log.head(("Pod",)), log.head(())] == [0, 0, 0]
    assert log.publish(3) == {"Pod", "Pod:placed", "Node"}
    reply = log.read(0, ("Node", "Pod:placed"))
    assert ([event.revision for event in reply.events], reply.revision) == ([2, 3], 3)
    assert [event.revision for event in log.read(0, ("Pod",)).events] == [1, 2]
    assert log.publish(4) == {"Pod"}
    assert [log.head(("Pod:placed",)), log.head(("Pod",)), log.head(())] == [3, 4, 4]


def test_nothing_is_gone_to_who_was_not_concerned() -> None:
    log = RevisionLog(20)
    for revision in range(1, 101):
        log.append(*change(revision, "Pod", *(["Pod:placed"] if revision == 30 else [])))
    assert log.publish(100) == {"Pod", "Pod:placed"}
    assert log.read(29, ("Pod:placed", "Node")).gone
    assert log.read(50, ("Node", "Pod")).gone
    assert log.read(50).gone
    log.append(*change(101, "Pod", "Pod:placed"))
    log.publish(101)
    reply = log.read(30, ("Pod:placed", "Node"))
    assert ([event.revision for event in reply.events], reply.gone) == ([101], False)
    log.forget_all(102)
    assert log.read(101, ("Pod:placed",)).gone


def test_the_log_is_bounded() -> None:
    log = log_of(*range(1, 5001), capacity=100)
    assert 5000 - log.oldest <= 100 + 100 // 4 + 1
    assert len(log.read(log.oldest, limit=10**6).events) == 5000 - log.oldest


@given(st.lists(st.integers(0, 60), min_size=1, max_size=80))
def test_the_log_is_bounded_in_bytes_and_says_what_is_gone(sizes: list[int]) -> None:
    log = RevisionLog(1_000, most_bytes=100)
    for revision, size in enumerate(sizes, start=1):
        log.append(Mutation(revision, "ADDED", "Pod", "default", "p", bytes(size)), frozenset({"Pod"}))
        log.publish(revision)
        kept = [event.revision for event in log.read(log.oldest).events]
        assert kept == [*range(log.oldest + 1, revision + 1)]
        assert sum(sizes[number - 1] for number in kept) <= 100
        assert revision in kept
        assert not log.oldest or log.read(log.oldest - 1, ("Pod",)).gone


def test_a_long_scan_is_cut() -> None:
    log = RevisionLog(50_000)
    for revision in range(1, 30_001):
        log.append(*change(revision))
    log.append(*change(30_001, "Node"))
    log.publish(30_001)
    since, calls = 0, 0
    while True:
        reply = log.read(since, ("Node",))
        since, calls = reply.revision, calls + 1
        if not reply.more:
            break
    assert (since, len(reply.events)) == (30_001, 1)
    assert calls > 1


STEPS = st.lists(st.tuples(st.sampled_from(["create", "label", "bind", "delete"]), st.integers(0, 4)), max_size=40)


def carry_out(cluster: Cluster, what: str, number: int) -> None:
    name = f"p{number}"
    match what:
        case "create":
            cluster.ask(Create(pack(pod(name))))
        case "label":
            cluster.ask(
                Patch("Pod", "default", name, pack({"metadata": {"labels": {"n": str(cluster.store.revision)}}}))
            )
        case "bind":
            cluster.ask(BindPod("default", name, "", "n1"))
        case _:
            cluster.ask(Delete("Pod", "default", name, None, 0))


@given(STEPS, st.integers(0, 40), st.integers(1, 7))
def test_a_list_and_what_comes_after_it_is_the_list_of_now(steps: list[tuple[str, int]], at: int, limit: int) -> None:
    cluster = Cluster()
    for what, number in steps[:at]:
        carry_out(cluster, what, number)
    listing = cluster.store.list("Pod")
    assert isinstance(listing, Listing)
    known = {unpack(blob)["metadata"]["name"]: blob for blob in listing.blobs}
    for what, number in steps[at:]:
        carry_out(cluster, what, number)
    since, more = listing.revision, True
    while more:
        reply = cluster.store.log.read(since, ("Pod",), limit)
        assert not reply.gone
        for event in reply.events:
            assert (event.name in known) == (event.type != "ADDED")
            if event.type == "DELETED":
                del known[event.name]
            else:
                known[event.name] = event.blob
        since, more = reply.revision, reply.more
    now = cluster.store.list("Pod")
    assert isinstance(now, Listing)
    assert since == now.revision
    assert list(now.blobs) == [known[name] for name in sorted(known)]


@given(STEPS)
def test_a_store_is_rebuilt_from_its_mutations(steps: list[tuple[str, int]]) -> None:
    cluster = Cluster()
    for what, number in steps:
        carry_out(cluster, what, number)
    old = cluster.store
    cluster.restart()
    assert cluster.store.revision == old.revision
    for kind in ("Pod", "Queue"):
        assert cluster.store.list(kind) == old.list(kind)
    assert cluster.store.log.read(0).gone or old.revision == 0
    # and goes on as the old one would have
    cluster.ask(Create(pack(pod("next"))))
    assert old.apply(Create(pack(pod("next"))), cluster.now) == Accepted(
        cluster.store.revision, pack(cluster.get("Pod", "next"))
    )
