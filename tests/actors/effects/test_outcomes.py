"""Binds that are refused, lost or too late, and statuses that meet a conflict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, cast

import anyio
import pytest

from pumice.actors.effects.effect_worker import RecentOperations
from pumice.actors.effects.status_writer import AGAIN_S, ATTEMPTS
from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.system.ports import StatusPort
from pumice.core.messages.commands import (
    ApiRequest,
    BindPod,
    Create,
    Delete,
    Get,
    LookLater,
    Patch,
    ReportStatus,
    StoreRequest,
    WriteStatus,
)
from pumice.core.messages.decisions import PodGroupEvent, PodGroupStatus
from pumice.core.messages.events import BindRefused, Bound, Outcome, StatusRefused
from pumice.core.messages.replies import ApiReply, Refused
from pumice.storage import codec
from pumice.storage.memory import MemoryJournal
from tests.actors.rig import idle, journaled, placed, started, stored, three_nodes
from tests.kit.jobs import gang
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod

pytestmark = pytest.mark.anyio
Apply = Callable[[StoreRequest, float], ApiReply]


async def test_a_refused_bind_is_forgotten_looked_at_again_and_bound() -> None:
    refusals: Counter[str] = Counter()

    def api(request: StoreRequest, apply: Apply, now: float) -> ApiReply:
        if isinstance(request, BindPod) and refusals[request.name] < 2:
            refusals[request.name] += 1
            return Refused(500, "InternalError", "planted")
        return apply(request, now)

    journal = MemoryJournal()
    async with started(journal, api=api) as system:
        await system.submit([*three_nodes(), *gang("g", pods=3, duration="0")])
        await idle(system)
        assert len(placed(system)) == 3
    outcomes = await journaled(journal, "outcome", Outcome)
    assert len([outcome for outcome in outcomes if isinstance(outcome, BindRefused)]) == 6
    assert len([outcome for outcome in outcomes if isinstance(outcome, Bound)]) == 3
    decided = {stored.sequence: stored for stored in await journal.read(kinds=["decision"])}
    caused = [stored.cause for stored in await journal.read(kinds=["outcome"])]
    assert sorted(caused) == sorted(decided)  # each decision has one outcome


async def test_a_bind_whose_answer_is_lost_is_not_done_twice() -> None:
    """Bound but reported failed: the watch says so, the pod is looked at again, nothing is bound anew."""
    lost: list[str] = []
    binds: Counter[str] = Counter()

    def api(request: StoreRequest, apply: Apply, now: float) -> ApiReply:
        reply = apply(request, now)
        if isinstance(request, BindPod):
            binds[request.name] += 1
            if request.name not in lost:
                lost.append(request.name)
                return Refused(504, "Timeout", "planted: the answer was lost")
        return reply

    async with started(api=api) as system:
        await system.submit([*three_nodes(), *gang("g", pods=3, duration="0")])
        await idle(system)
        assert len(placed(system)) == 3
    assert binds == {f"g-{number}": 1 for number in range(3)}


async def test_a_pod_deleted_while_it_is_bound_is_let_go() -> None:
    def api(request: StoreRequest, apply: Apply, now: float) -> ApiReply:
        if isinstance(request, BindPod) and request.name == "g-1":
            apply(Delete("Pod", "default", "g-1", grace_period_s=0), now)
        return apply(request, now)

    async with started(api=api) as system:
        await system.submit([*three_nodes(), *gang("g", pods=3, duration="0")])
        await idle(system)
        assert sorted(placed(system)) == ["g-0", "g-2"]


async def test_a_status_that_meets_conflicts_is_written_all_the_same() -> None:
    conflicts = 0

    def api(request: StoreRequest, apply: Apply, now: float) -> ApiReply:
        nonlocal conflicts
        if isinstance(request, ReportStatus) and request.kind == "PodGroup" and conflicts < 3:
            conflicts += 1
            return Refused(409, "Conflict", "planted")
        return apply(request, now)

    async with started(api=api) as system:
        await system.submit([*three_nodes(), *gang("g", pods=3, duration="0")])
        await idle(system)
        (group,) = stored(system, "PodGroup")
        assert group["status"]["phase"] in ("Inqueue", "Running")
        assert conflicts == 3


async def test_a_status_that_was_given_up_is_said_anew_by_a_later_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the view says that anything is left to be said: the writer has the scheduler look again."""
    monkeypatch.setattr("pumice.actors.effects.status_writer.AGAIN_S", 0.02)
    conflicts = 0

    def api(request: StoreRequest, apply: Apply, now: float) -> ApiReply:
        nonlocal conflicts
        if isinstance(request, ReportStatus) and request.kind == "PodGroup" and conflicts < 2 * ATTEMPTS + 1:
            conflicts += 1
            return Refused(409, "Conflict", "planted")
        return apply(request, now)

    journal = MemoryJournal()
    async with started(journal, api=api) as system:
        await system.submit([pod_group("g", phase="Inqueue"), pod("g-0", group="g", cpu="99")])
        await idle(system)
        (group,) = stored(system, "PodGroup")
    assert [each["type"] for each in group["status"]["conditions"]] == ["Unschedulable"]
    given_up = [each for each in await journaled(journal, "outcome", Outcome) if isinstance(each, StatusRefused)]
    assert {each.message for each in given_up} == {"another client kept writing the object, 5 times"}


async def test_the_more_often_it_is_given_up_the_later_it_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written in between ends that."""
    asked: list[float] = []
    journal = MemoryJournal()
    async with started(journal) as system:
        await system.submit([pod_group("g")])
        await idle(system)
        api = system.api.ask_many

        async def lost(messages: Sequence[ApiRequest], **within: float) -> Sequence[ApiReply | None]:
            return [None for _ in messages] if within else await api(messages)

        tell = cast("Any", Mailbox).tell

        async def told(mailbox: Any, message: Any, *rest: Any) -> None:
            if isinstance(message, LookLater):
                asked.append(message.wait_s)
            await tell(mailbox, message, *rest)

        monkeypatch.setattr(Mailbox, "tell", told)
        status = cast("StatusPort", system.switchboard.mailboxes["status-writer"])
        for cycle, refused in enumerate((True, True, True, False, True), 7):
            monkeypatch.setattr(system.api, "ask_many", lost if refused else api)
            said = PodGroupStatus("default", "g", "Inqueue" if cycle % 2 else "Running", (), 0, 0, 0)
            await status.ask(WriteStatus(cycle, pod_groups=(said,)))
        monkeypatch.setattr(system.api, "ask_many", api)
    assert asked == [AGAIN_S, 2 * AGAIN_S, 4 * AGAIN_S, AGAIN_S]


async def test_an_answer_is_waited_for_once_and_its_loss_is_no_crash_and_no_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cycle waits for it. Nobody knows whether it is written: a later cycle sees, and says it anew if it is not."""
    monkeypatch.setattr("pumice.actors.effects.status_writer.AGAIN_S", 0.02)
    waited: list[float] = []
    journal = MemoryJournal()
    async with started(journal) as system:
        await idle(system)
        ask_many = system.api.ask_many

        async def lost(messages: Sequence[ApiRequest], *, within_s: float | None = None) -> Sequence[ApiReply | None]:
            if within_s is None:
                return await ask_many(messages)
            if any(isinstance(each, ReportStatus) for each in messages):
                waited.append(within_s)
            return [None for _ in messages]

        monkeypatch.setattr(system.api, "ask_many", lost)
        await system.submit([pod_group("g")])
        with anyio.fail_after(5):
            while not waited:  # noqa: ASYNC110
                await anyio.sleep(0.005)
        assert system.supervisor.restarts["status-writer"] == 0
        monkeypatch.setattr(system.api, "ask_many", ask_many)
        await idle(system)
        (group,) = stored(system, "PodGroup")
        assert group["status"]["phase"] == "Inqueue"
    assert set(waited) == {1.0}
    assert not [each for each in await journaled(journal, "outcome", Outcome) if isinstance(each, StatusRefused)]


async def test_a_status_is_written_without_being_read_first() -> None:
    read: list[str] = []

    def api(request: StoreRequest, apply: Apply, now: float) -> ApiReply:
        if isinstance(request, Get):
            read.append(request.kind)
        return apply(request, now)

    async with started(api=api) as system:
        await system.submit([*three_nodes(), *gang("g", pods=3, cpu="7", duration="0"), *gang("h", pods=3, cpu="7")])
        await idle(system)
        assert len(placed(system)) == 3
    assert "Pod" not in read


async def test_a_status_is_not_laid_over_what_has_come_since() -> None:
    """Somebody else writes the object just before: the writer is told, and writes again over what it is by then."""
    marked: list[int] = []
    known: list[int] = []

    def api(request: StoreRequest, apply: Apply, now: float) -> ApiReply:
        if isinstance(request, ReportStatus) and request.kind == "PodGroup" and not marked:
            apply(Patch("PodGroup", "default", "g", codec.pack({"metadata": {"labels": {"mine": "yes"}}})), now)
            reply = apply(request, now)
            assert isinstance(reply, Refused)
            marked.extend([reply.code, reply.revision])
            return reply
        if isinstance(request, ReportStatus) and request.kind == "PodGroup":
            known.append(request.as_of)
        return apply(request, now)

    async with started(api=api) as system:
        await system.submit([*three_nodes(), *gang("g", pods=3, duration="0")])
        await idle(system)
        (group,) = stored(system, "PodGroup")
    assert marked[0] == 409
    assert known[0] >= marked[1]
    assert group["metadata"]["labels"]["mine"] == "yes"
    assert group["status"]["phase"] in ("Inqueue", "Running")


async def test_a_status_that_is_refused_is_on_record() -> None:
    def api(request: StoreRequest, apply: Apply, now: float) -> ApiReply:
        if isinstance(request, ReportStatus) and request.kind == "PodGroup":
            return Refused(403, "Forbidden", "planted")
        return apply(request, now)

    journal = MemoryJournal()
    async with started(journal, api=api) as system:
        await system.submit([*three_nodes(), *gang("g", pods=3, duration="0")])
        await idle(system)
    refused = [each for each in await journaled(journal, "outcome", Outcome) if isinstance(each, StatusRefused)]
    assert {(each.kind, each.name, each.code, each.message) for each in refused} == {("PodGroup", "g", 403, "planted")}


async def test_what_was_said_is_remembered_of_the_latest_pod_groups_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.actors.effects.status_writer.REMEMBERED", 2)
    told: list[str] = []

    def api(request: StoreRequest, apply: Apply, now: float) -> ApiReply:
        if isinstance(request, Create) and codec.unpack(request.blob)["kind"] == "Event":
            told.append(codec.unpack(request.blob)["involvedObject"]["name"])
        elif isinstance(request, Patch) and request.kind == "Event":
            told.append(f"{request.name.partition('.')[0]} x {codec.unpack(request.blob)['count']}")
        return apply(request, now)

    async with started(api=api) as system:
        await system.submit([pod_group(f"g{number}") for number in range(3)])
        status = system.switchboard.mailboxes["status-writer"]
        for name in ("g0", "g1", "g1", "g2", "g0", "g2"):
            await status.ask(WriteStatus(1, events=(PodGroupEvent("default", name, "Unschedulable", "no room"),)))
    assert told == ["g0", "g1", "g2", "g0 x 2"]


def test_operations_are_remembered_for_some_cycles() -> None:
    recent = RecentOperations(limit=2)
    assert [recent.is_new(each) for each in ("1/a", "1/b", "1/a", "2/a", "1/b")] == [True, True, False, True, False]
    assert recent.is_new("3/a")
    assert [recent.is_new(each) for each in ("2/a", "3/a", "3/b")] == [False, False, True]
    assert recent.is_new("1/a"), "of a cycle that is forgotten"
