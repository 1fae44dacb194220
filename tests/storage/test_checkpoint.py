"""Checkpoints: a restart from one is a restart from the whole journal."""

from __future__ import annotations

import zlib
from dataclasses import replace

import pytest

from pumice.cluster.api.store import Store
from pumice.core.messages.decisions import Bind, BindContext
from pumice.core.messages.events import CycleRecord, HeldBind, HeldEviction, Mutation
from pumice.core.messages.replies import Accepted
from pumice.questions.replay.replayer import start
from pumice.storage import codec
from pumice.storage.checkpoint import CheckpointState, read_checkpoint
from pumice.storage.errors import CodecError, DamagedError
from pumice.storage.journal import Checkpoint, Journal, Record
from pumice.storage.memory import MemoryJournal
from pumice.storage.recovery import Recovered, recover
from tests.actors.cluster import Cluster
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.storage.examples import bind, bound, config, cycle, mutation

pytestmark = pytest.mark.anyio


def lively() -> list[Record]:
    """Records of a cluster in which objects come, change, own each other and go."""
    cluster = Cluster()
    for number in range(4):
        cluster.create(node(f"n{number}"))
    for number in range(5):
        for obj in gang(f"g{number}", pods=3):
            cluster.create(obj)
    cluster.patch("Node", "n1", {"spec": {"unschedulable": True}}, "")
    cluster.bind("g0-0", "n0")
    cluster.delete("Pod", "g1-1", grace_s=0)
    cluster.delete("PodGroup", "g2")
    cluster.create(gang("g1", pods=2)[2])
    return [Record("api", codec.encode(one), 0, float(one.revision)) for one in cluster.journal]


def noted(records: list[Record]) -> CheckpointState:
    """The state after these records."""
    state = CheckpointState()
    journal = MemoryJournal()
    journal._unchained += records  # pyright: ignore[reportPrivateUsage]
    journal._chain()  # pyright: ignore[reportPrivateUsage]
    for stored in journal._records:  # pyright: ignore[reportPrivateUsage]
        state.note(stored)
    return state


async def store_of(journal: Journal) -> tuple[Store, Recovered]:
    """What a restart makes of a journal."""
    store = Store()
    return store, await recover(journal, store.restore, store.load)


def everything_in(store: Store) -> object:
    """All that a store holds, private indexes included."""
    tables = store.tables
    kinds = {
        kind: [(name, one.blob, one.revision, one.uid) for name, one in rows.items()]
        for kind, rows in tables._kinds.items()  # pyright: ignore[reportPrivateUsage]
        if rows
    }
    owned = {uid: list(keys) for uid, keys in tables._dependents.items()}  # pyright: ignore[reportPrivateUsage]
    removed = list(tables._removed_uids)  # pyright: ignore[reportPrivateUsage]
    return kinds, owned, removed, store.revision, store.log.published


@pytest.mark.parametrize("after", [0, 1, 7, 20, 1000])
async def test_a_restart_from_a_checkpoint_is_one_from_the_beginning(journal: Journal, after: int) -> None:
    records = lively()
    await journal.append(records)
    whole, from_start = await store_of(journal)
    taken = noted(records[:after])
    if after:
        assert await journal.save_checkpoint(taken.checkpoint(1.0)) == len(records) + 1
        from_start = replace(from_start, sequence=len(records) + 1, records=len(records) + 1)  # one of the checkpoint
    again, from_checkpoint = await store_of(journal)
    assert everything_in(again) == everything_in(whole)
    assert from_checkpoint == from_start
    assert isinstance(again.get("Pod", "default", "g1-1"), Accepted)


async def test_what_was_cut_is_not_needed(journal: Journal) -> None:
    records = lively()
    await journal.append(records[:20])
    await journal.append(records[20:])
    whole, _ = await store_of(journal)
    await journal.save_checkpoint(noted(records[:25]).checkpoint(1.0))
    assert await journal.cut(25) >= 20
    again, recovered = await store_of(journal)
    assert everything_in(again) == everything_in(whole)
    assert recovered.records == len(records) + 1, "and that of the checkpoint"


async def test_a_journal_that_was_cut_needs_a_checkpoint() -> None:
    journal = MemoryJournal()
    await journal.append(lively())
    await journal.save_checkpoint(Checkpoint(20, 1.0, b"broken"))
    await journal.cut(20)
    with pytest.raises(DamagedError, match="no checkpoint stands for them"):
        await store_of(journal)


async def test_a_checkpoint_that_cannot_be_read_is_passed_over(journal: Journal) -> None:
    records = lively()
    await journal.append(records)
    whole, _ = await store_of(journal)
    await journal.save_checkpoint(noted(records[:10]).checkpoint(1.0))
    await journal.save_checkpoint(Checkpoint(20, 2.0, b"broken"))
    again, _ = await store_of(journal)
    assert everything_in(again) == everything_in(whole)


async def test_cycles_and_what_is_unresolved() -> None:
    records = [config("actions: allocate"), mutation(1, "a"), mutation(2, "b"), cycle(1, 2, 2), bind("a"), bind("b")]
    state = noted([*records, bound("a", 5)])
    read = read_checkpoint(state.checkpoint(9.0))
    assert read.recovered == state.recovered
    assert read.recovered.unresolved == {6: (1, Bind("default", "b", "uid-b", "n0", "default/j"))}
    assert read.recovered.config_text == "actions: allocate"
    assert read.past.decided == state.past.decided
    assert (read.sequence, read.past.revision, read.past.newest) == (7, 2, 2)


async def test_what_is_in_flight() -> None:
    pods = [pod(name, uid=name, node="n0" if name == "c" else None) for name in ("a", "b", "c")]
    seen = [
        Mutation(revision, "ADDED", "Pod", "default", each["metadata"]["name"], codec.pack(each))
        for revision, each in enumerate(pods, start=1)
    ]
    needs = BindContext(volumes=(("pv", "default/claim"),))
    operations = (
        HeldBind(3, "default", "a", "a", "n0"),
        HeldBind(3, "default", "b", "b", "n1", needs),
        HeldEviction(3, "default", "c", "c"),
    )
    at = CycleRecord(1, 0.0, 7, 3, 3, "c0", "", 0, operations=operations)
    state = noted([*[Record("api", codec.encode(each)) for each in seen], Record("cycle", codec.encode(at))])
    flights = read_checkpoint(state.checkpoint(9.0)).past.flights
    assert flights.binds == {("default", "a"): ("a", "n0"), ("default", "b"): ("b", "n1")}
    assert flights.promised == {("default", "b"): needs}
    assert flights.evictions == {("default", "c"): "c"}


async def test_never_in_the_middle_of_a_cycle() -> None:
    assert noted([cycle(1, 0, 1)]).between_cycles is False
    assert noted([cycle(1, 0, 1), bind("a")]).between_cycles is True


async def test_a_replay_begins_as_late_as_it_may() -> None:
    records = [mutation(1, "a"), cycle(1, 1), mutation(2, "b"), cycle(2, 2), mutation(3, "c"), cycle(3, 3)]
    journal = MemoryJournal()
    await journal.append(records)
    assert (await start(journal, 3))[1] == 0
    await journal.save_checkpoint(noted(records[:2]).checkpoint(1.0))
    await journal.save_checkpoint(noted(records[:4]).checkpoint(2.0))
    assert [(await start(journal, first))[1] for first in (1, 2, 3)] == [0, 2, 4]
    await journal.cut(2)
    assert (await start(journal, 1))[1] == 2


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", zlib.compress(codec.pack({})), zlib.compress(codec.pack({"format": 99}))]
)
async def test_not_a_checkpoint(content: bytes) -> None:
    with pytest.raises(CodecError):
        read_checkpoint(Checkpoint(3, 0.0, content))
