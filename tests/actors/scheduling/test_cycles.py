"""The session runner in a whole system: the order of a commit, lost cycles, outcomes that fail, idling."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from pumice.actors.errors import RecorderFailedError
from pumice.actors.runtime.envelope import Received
from pumice.actors.scheduling.core_decider import core_decider
from pumice.config.errors import ConfigError
from pumice.core.messages.commands import AwaitCycle, BindPod, Restart, StoreRequest
from pumice.core.messages.decisions import Bind, Decision
from pumice.core.messages.events import (
    ConfigLoaded,
    Outcome,
)
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.storage import codec
from pumice.storage.journal import Record
from pumice.storage.memory import MemoryJournal
from tests.actors.rig import (
    QUICK,
    cycles,
    idle,
    journaled,
    placed,
    started,
    stored,
    tampered,
    three_nodes,
)
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.pods import pod

pytestmark = pytest.mark.anyio
Apply = Callable[[StoreRequest, float], ApiReply]


async def test_a_gang_is_bound_whole_and_the_system_becomes_idle() -> None:
    journal = MemoryJournal()
    async with started(journal) as system:
        await system.submit([*three_nodes(), *gang("g", pods=6, duration="0")])
        await idle(system)
        assert sorted(placed(system)) == [f"g-{number}" for number in range(6)]
        assert (await system.summary()).pods.bound == 6
        quiet = system.memory.cycle
        await anyio.sleep(0.1)
        assert system.memory.cycle == quiet
    decisions = await journaled(journal, "decision", Decision)
    outcomes = await journaled(journal, "outcome", Outcome)
    assert {bind.uid for bind in decisions} == {outcome.uid for outcome in outcomes}
    assert len(decisions) == len(outcomes) == 6
    assert (await journal.check()).whole


async def test_a_gang_that_does_not_fit_waits_and_the_system_is_idle_all_the_same() -> None:
    async with started() as system:
        await system.submit([*three_nodes(), *gang("big", pods=4, cpu="7")])
        await idle(system)
        assert placed(system) == {}
        conditions = [pod["status"]["conditions"] for pod in stored(system, "Pod")]
        assert all(any(each["type"] == "PodScheduled" for each in pod) for pod in conditions)


class WatchedJournal(MemoryJournal):
    """Notes when the decision about a pod is on disk; `fail_at` names a kind whose appends fail."""

    def __init__(self, notes: list[tuple[str, str]], fail_at: str = "") -> None:
        super().__init__()
        self._notes = notes
        self._fail_at = fail_at

    async def append(self, records: Sequence[Record]) -> int:
        if self._fail_at in [record.kind for record in records]:
            raise OSError("no space left on device")
        last = await super().append(records)
        for record in records:
            if record.kind == "decision":
                self._notes.append(("on disk", codec.decode(record.payload, Bind).name))
        return last


async def test_on_disk_then_assumed_then_bound() -> None:
    notes: list[tuple[str, str]] = []
    real = core_decider()

    def new_view() -> Any:
        view = real.new_view()
        assume = view.assume

        def noted(namespace: str, name: str, node: str, *more: Any) -> bool:
            notes.append(("assumed", name))
            return assume(namespace, name, node, *more)

        setattr(view, "assume", noted)  # noqa: B010
        return view

    def api(request: StoreRequest, apply: Apply, now: float) -> ApiReply:
        if isinstance(request, BindPod):
            notes.append(("bound", request.name))
        return apply(request, now)

    async with started(WatchedJournal(notes), decider=replace(real, new_view=new_view), api=api) as system:
        await system.submit([*three_nodes(), *gang("g", pods=5, duration="0")])
        await idle(system)
    for name in (f"g-{number}" for number in range(5)):
        assert [what for what, which in notes if which == name] == ["on disk", "assumed", "bound"]
    steps = [what for what, _ in notes]
    assert steps == ["on disk"] * 5 + ["assumed"] * 5 + ["bound"] * 5  # the whole gang, step by step


async def test_nothing_is_sent_when_the_journal_fails_and_everything_stops() -> None:
    bound: list[BindPod] = []

    def api(request: StoreRequest, apply: Apply, now: float) -> ApiReply:
        if isinstance(request, BindPod):
            bound.append(request)
        return apply(request, now)

    journal = WatchedJournal([], fail_at="decision")

    async def run() -> None:
        async with started(journal, api=api) as system:
            await system.submit([*three_nodes(), *gang("g", pods=3)])
            await anyio.sleep(5)
            pytest.fail("the system went on without its journal")

    with pytest.raises(RecorderFailedError, match="no space left"):
        await run()
    assert not bound


async def test_a_session_is_handed_over_only_for_an_action_that_has_something_to_do() -> None:
    ran: list[str] = []

    def run_action(real: Callable[[Any, str], None], session: Any, action: str) -> None:
        ran.append(action)
        real(session, action)

    async with started(decider=tampered(run_action)) as system:
        await system.submit([*three_nodes(), *gang("g", pods=2, duration="0")])
        await idle(system)
        await system.submit([node("n9")])  # one more cycle, in which nobody waits
        await idle(system)
        assert len(placed(system)) == 2
        received = {
            each.name: each.received for each in (box.statistics() for box in system.switchboard.mailboxes.values())
        }
        text = (await system.metrics_text()).decode()
    sessions = len(ran) // 3
    assert 2 < sessions == system.memory.cycle
    assert ran == ["enqueue", "allocate", "backfill"] * sessions  # wherever it is
    assert received["action-worker:backfill"] == 0
    assert 0 < received["action-worker:enqueue"] < sessions
    assert 0 < received["action-worker:allocate"] < sessions
    assert f'action_scheduling_latency_milliseconds_count{{action="backfill"}} {sessions}' in text
    assert f"open_session_duration_milliseconds_count {sessions}" in text


@pytest.mark.parametrize("actor", ["cache", "session-runner", "bind-worker:0", "status-writer", "metrics"])
async def test_any_restarted_actor_leaves_a_system_that_works(actor: str) -> None:
    async with started() as system:
        await system.submit([*three_nodes(), *gang("g", pods=4, duration="0")])
        await idle(system)
        await system.supervisor.mailbox.tell(Restart(actor))
        await anyio.sleep(0.05)
        await system.submit(gang("h", pods=4, duration="0"))
        await idle(system)
        assert system.supervisor.restarts[actor] == 1
        assert len(placed(system)) == 8


STOCK = "actions: enqueue, allocate, backfill\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n"


async def test_a_changed_configuration_is_taken_over_and_a_bad_one_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text("actions: enqueue\ntiers:\n- plugins:\n  - name: gang\n")
    journal = MemoryJournal()
    async with started(journal, settings=replace(QUICK, config_path=path)) as system:
        await system.submit([*three_nodes(), *gang("g", pods=2, duration="0")])
        await idle(system)
        assert placed(system) == {}  # nothing allocates
        path.write_text("actions: enqueue, alocate\n")
        await system.run_cycle()
        assert "alocate" in caplog.text
        assert system.source.loaded.config.actions == ("enqueue",)
        path.write_text(STOCK)
        await system.run_cycle()
        await idle(system)
        assert len(placed(system)) == 2
        path.write_text(f"{STOCK}  - name: nodeorder\n    arguments:\n      leastrequested.weight: abc\n")
        await system.run_cycle()
        assert "arguments[leastrequested.weight]: expected an integer, was 'abc'" in caplog.text
    configs = await journaled(journal, "config", ConfigLoaded)
    assert [bool(each.error) for each in configs] == [False, True, False, False]
    assert configs[2].text == STOCK
    digests = {record.config_digest for record in await cycles(journal)}
    assert digests == {configs[0].digest, configs[2].digest, configs[3].digest}


async def test_a_bad_configuration_at_the_start_is_refused_immediately() -> None:
    with pytest.raises(ConfigError, match="alocate"):
        async with started(settings=replace(QUICK, config_text="actions: alocate\n")):
            pytest.fail("it started")


async def test_cycles_keep_their_distance() -> None:
    journal = MemoryJournal()
    async with started(journal, settings=replace(QUICK, schedule_period_s=0.05)) as system:
        await system.submit(three_nodes())
        for number in range(20):
            await system.submit([pod(f"p{number}", duration="0")])
            await anyio.sleep(0.01)
        await idle(system)
    at = [record.now for record in await cycles(journal)]
    assert all(after - before >= 0.045 for before, after in pairwise(at))


async def test_a_refused_submission_is_an_answer() -> None:
    async with started() as system:
        answers = await system.submit([*three_nodes(), three_nodes()[0], {"kind": "Nonsense"}])
        assert [type(answer) for answer in answers] == [Accepted] * 3 + [Refused] * 2


async def test_who_waits_for_a_cycle_hears_of_it_though_the_runner_crashes() -> None:
    async with started() as system:
        await idle(system)
        wanted = await system.cycles() + 1
        reached: list[int] = []

        async def wait() -> None:
            await system.until_cycles(wanted)
            reached.append(await system.cycles())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await system.supervisor.mailbox.tell(Restart("session-runner"))
            await anyio.sleep(0.05)
            assert reached == []
            await system.run_cycle()
        assert reached == [wanted]


async def test_who_was_told_of_a_cycle_is_remembered_no_longer() -> None:
    def kept() -> int:
        gc.collect()
        found: list[Received[Any, Any]] = [each for each in gc.get_objects() if type(each) is Received]
        return sum(isinstance(each.message, AwaitCycle) for each in found)

    async with started() as system:
        await idle(system)
        before = kept()
        for _ in range(10):
            await system.cycles()
        await system.run_cycle()  # what the runner had in hand last is another message
        assert kept() <= before
