"""Starting again on a journal: nothing acknowledged is lost, nothing is bound twice, cycles go on counting."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from anyio.streams.text import TextReceiveStream

from pumice.actors.system.restart import Recovered, recover, resolve
from pumice.core.messages.decisions import Bind, Decision, Evict
from pumice.core.messages.events import (
    BindTimedOut,
    Bound,
    ConfigLoaded,
    Evicted,
    EvictTimedOut,
    Mutation,
    Outcome,
)
from pumice.core.messages.message import Message
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.storage import codec
from pumice.storage.journal import Journal, Record
from pumice.storage.memory import MemoryJournal
from pumice.storage.sqlite import SqliteJournal
from tests.actors.rig import cycles, idle, journaled, placed, started, stored, three_nodes
from tests.kit.jobs import gang

pytestmark = pytest.mark.anyio


async def test_a_second_start_continues_where_the_first_left_off() -> None:
    journal = MemoryJournal()
    async with started(journal) as system:
        await system.submit([*three_nodes(), *gang("g", pods=3, duration="0")])
        await idle(system)
        before, revision, objects = placed(system), system.store.revision, stored(system, "Pod")
        last = system.memory.cycle
    async with started(journal) as system:
        assert stored(system, "Pod") == objects
        assert system.store.revision >= revision
        await system.submit(gang("h", pods=3, duration="0"))
        await idle(system)
        assert {name: node for name, node in placed(system).items() if name.startswith("g")} == before
        assert len(placed(system)) == 6
    numbers = [record.cycle for record in await cycles(journal)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert numbers[-1] > last
    assert len(await journaled(journal, "config", ConfigLoaded)) == 1  # it did not change
    binds = Counter(decision.name for decision in await journaled(journal, "decision", Decision))
    assert set(binds.values()) == {1}


async def test_decisions_cut_off_before_they_were_carried_out_are_made_again() -> None:
    """The process ends right after the cycle is on disk: no bind was sent."""

    class CutOff(MemoryJournal):
        def __init__(self) -> None:
            super().__init__()
            self.decided = anyio.Event()

        async def append(self, records: Sequence[Record]) -> int:
            last = await super().append(records)
            if any(record.kind == "decision" for record in records):
                self.decided.set()
                await anyio.sleep_forever()
            return last

    journal = CutOff()
    with anyio.move_on_after(10) as scope:
        async with started(journal) as system:
            await system.submit([*three_nodes(), *gang("g", pods=3, duration="0")])
            await journal.decided.wait()
            scope.cancel()
    assert journal.decided.is_set()
    again = MemoryJournal()
    await again.append([Record(r.kind, r.payload, r.cause, r.at) for r in await journal.read()])
    async with started(again) as system:
        await idle(system)
        assert len(placed(system)) == 3
    outcomes = await journaled(again, "outcome", Outcome)
    assert len([outcome for outcome in outcomes if isinstance(outcome, BindTimedOut)]) == 3
    assert len([outcome for outcome in outcomes if isinstance(outcome, Bound)]) == 3


def _pod(uid: str, *, node: str = "", deleted: bool = False) -> ApiReply:
    metadata = {"namespace": "ns", "name": "p", "uid": uid} | ({"deletionTimestamp": "x"} if deleted else {})
    return Accepted(1, codec.pack({"metadata": metadata, "spec": {"nodeName": node} if node else {}}))


GONE = Refused(404, "NotFound", "")
BIND = Bind("ns", "p", "u1", "n1", "ns/g")
EVICT = Evict("ns", "p", "u1", "n1", "ns/g", "preempt")


@pytest.mark.parametrize(
    ("decision", "truth", "outcome"),
    [
        (BIND, _pod("u1", node="n1"), Bound),
        (BIND, _pod("u1"), BindTimedOut),
        (BIND, _pod("u1", node="n2"), BindTimedOut),
        (BIND, _pod("u2", node="n1"), BindTimedOut),
        (BIND, GONE, BindTimedOut),
        (EVICT, GONE, Evicted),
        (EVICT, _pod("u2"), Evicted),
        (EVICT, _pod("u1", deleted=True), Evicted),
        (EVICT, _pod("u1"), EvictTimedOut),
    ],
)
async def test_an_unfinished_decision_ends_as_the_api_has_it(
    decision: Bind | Evict, truth: ApiReply, outcome: type[Message]
) -> None:
    journal = MemoryJournal()
    await journal.append([Record("decision", codec.encode(decision))])

    def restore(mutation: Mutation) -> None:
        pytest.fail(f"there is none: {mutation}")

    recovered = await recover(journal, restore)
    assert list(recovered.unresolved) == [1]
    (resolved,) = await resolve(journal, recovered, lambda namespace, name: truth, 5.0)
    assert isinstance(resolved, outcome)
    assert (await recover(journal, restore)).unresolved == {}  # written down, with its cause
    assert await resolve(journal, await recover(journal, restore), lambda namespace, name: truth, 5.0) == []


async def test_an_empty_journal_recovers_to_nothing() -> None:
    assert await recover(MemoryJournal(), lambda mutation: None) == Recovered()


# --- kill -9

CHILD = """
import sys, anyio
from pumice.actors.runtime.clock import RealClock
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.storage.sqlite import SqliteJournal
from tests.actors.rig import three_nodes
from tests.kit.jobs import gang

async def main():
    journal = await SqliteJournal.open(sys.argv[1])
    system = System(SystemSettings(schedule_period_s=0.002), journal, RealClock())
    async with system.running():
        await system.submit(three_nodes())
        for number in range(200):
            answers = await system.submit(gang(f"g{number}", pods=4, cpu="10m", memory="1Mi", duration="0"))
            for answer in answers:
                print(type(answer).__name__, number, flush=True)
        await system.until_idle()

anyio.run(main, backend=sys.argv[2])
"""


async def killed_half_way(path: Path, backend: str, acknowledged: int) -> int:
    """Run until so many objects are acknowledged, then kill -9; how many were acknowledged in the end."""
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", CHILD, str(path), backend]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    seen = ""
    async with await anyio.open_process(command, cwd=root, stderr=None, env=environment) as child:
        assert child.stdout is not None
        async for chunk in TextReceiveStream(child.stdout):
            seen += chunk
            if seen.count("Accepted") >= acknowledged:
                child.send_signal(signal.SIGKILL)
    return seen.count("Accepted")


async def test_kill_9_loses_nothing_acknowledged_and_binds_nothing_twice(tmp_path: Path, anyio_backend: str) -> None:
    """At one point; `tests/pumice/runtime/test_crash.py` kills at many."""
    path, acknowledged = tmp_path / "killed.db", 150
    seen = await killed_half_way(path, anyio_backend, acknowledged)
    assert seen >= acknowledged
    journal: Journal = await SqliteJournal.open(path)
    try:
        async with started(journal) as system:
            objects = stored(system, "Pod") + stored(system, "PodGroup")
            assert len(objects) >= seen
            already = placed(system)
            await idle(system)
            after = placed(system)
            whole = Counter(name.rsplit("-", 1)[0] for name in after)
            assert {name: after[name] for name in already} == already
            present = Counter(pod["metadata"]["name"].rsplit("-", 1)[0] for pod in stored(system, "Pod"))
            groups = {group["metadata"]["name"] for group in stored(system, "PodGroup")}
            assert whole == {name: 4 for name, pods in present.items() if pods == 4 and name in groups}
        assert (await journal.check()).whole
        bound = [outcome for outcome in await journaled(journal, "outcome", Outcome) if isinstance(outcome, Bound)]
        assert max(Counter(outcome.uid for outcome in bound).values()) == 1
        assert {outcome.name for outcome in bound} == set(after)
    finally:
        await journal.close()
