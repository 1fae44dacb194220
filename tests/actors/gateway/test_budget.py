"""The limit in bytes: never passed, whatever is asked for; the slowest give way, watches first."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from time import perf_counter

import anyio
import pytest
from anyio import lowlevel
from hypothesis import given
from hypothesis import strategies as st

from pumice.actors.gateway import budget as module
from pumice.actors.gateway.budget import (
    CONNECTION,
    GRACE_S,
    REQUEST,
    RESERVE,
    ROUND_S,
    SLOW_S,
    STALLED_S,
    TIDY_S,
    ByteBudget,
    LoopTurns,
    NoRoomError,
    Share,
    Use,
)

LIMIT = 1_000_000
LARGE = LIMIT // 4
WORK_S = 0.002
MANY = 100


@dataclass
class Connection:
    """A share whose end is noted."""

    budget: ByteBudget
    use: Use = Use.ANSWER
    cuts: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.share = Share(self.budget, lambda: self.cuts.append("cut"), self.use)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, LIMIT), st.booleans())))
def test_the_sum_of_shares_never_passes_the_limit(steps: list[tuple[int, int, bool]]) -> None:
    budget = ByteBudget(LIMIT)
    shares = [Share(budget, lambda: None) for _ in range(5)]
    for number, size, gives in steps:
        share = shares[number]
        if gives:
            budget.give_back(share, min(size, share.held))
        else:
            took = budget.take(share, size)
            assert took or budget.held + size > LIMIT - LIMIT // RESERVE
        assert budget.held == sum(each.held for each in shares) <= LIMIT
    for share in shares:
        budget.give_back(share)
    assert budget.held == 0


@pytest.mark.anyio
@pytest.mark.parametrize("late", [0.0, 0.001])
async def test_many_at_once_pass_in_turn_under_the_limit(late: float) -> None:
    budget, most, done = ByteBudget(LIMIT), 0, list[int]()

    async def one(number: int) -> None:
        nonlocal most
        share = Share(budget, lambda: None)
        async with share.holding(LARGE + number):
            most = max(most, budget.held)
            await anyio.sleep(late)
        done.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(30):
            tasks.start_soon(one, number)
    assert sorted(done) == list(range(30))
    assert LARGE < most <= LIMIT - LIMIT // RESERVE
    assert budget.held == 0


async def full(budget: ByteBudget, *connections: tuple[Connection, float]) -> None:
    """Each holds a quarter or so, and waits on its client since then."""
    for connection, since in connections:
        await budget.demand(connection.share, (LIMIT - LIMIT // RESERVE) // len(connections))
        connection.share.since = since


@pytest.mark.anyio
async def test_the_slowest_watch_gives_way_first() -> None:
    budget, now = ByteBudget(LIMIT), 100.0
    slow, slower = Connection(budget, Use.WATCH), Connection(budget, Use.WATCH)
    quick, answer = Connection(budget, Use.WATCH), Connection(budget)
    await full(budget, (slow, now - 3), (slower, now - 5), (quick, now), (answer, now - 20))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(budget.demand, Share(budget, lambda: None), CONNECTION + 1)
        await anyio.wait_all_tasks_blocked()
        budget.relieve(now)
        assert [each.share.expelled for each in (slow, slower, quick)] == [None, now, None]
        budget.relieve(now + GRACE_S / 2)
        assert not slower.cuts, "it has a moment to say so"
        budget.relieve(now + GRACE_S)
        assert (slower.cuts, slow.cuts, answer.cuts) == (["cut"], [], [])
        budget.give_back(slower.share)  # as its end does; and with that the one that waits goes on


@pytest.mark.anyio
async def test_answers_give_way_when_no_watch_is_slow() -> None:
    budget, now = ByteBudget(LIMIT), 100.0
    stalled, reads = Connection(budget), Connection(budget)
    watch, idle = Connection(budget, Use.WATCH), Connection(budget, Use.IDLE)
    await full(budget, (stalled, now - STALLED_S), (reads, now - STALLED_S / 2), (watch, now), (idle, now))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(budget.demand, Share(budget, lambda: None), CONNECTION + 1)
        await anyio.wait_all_tasks_blocked()
        budget.relieve(now)
        assert (stalled.cuts, reads.cuts, idle.cuts) == (["cut"], [], [])
        budget.relieve(now + SLOW_S)
        assert (watch.share.expelled, idle.cuts) == (now + SLOW_S, []), "one is enough"
        budget.give_back(stalled.share)
        budget.give_back(watch.share)


def test_nobody_gives_way_while_nothing_waits() -> None:
    budget = ByteBudget(LIMIT)
    watch = Connection(budget, Use.WATCH)
    assert budget.take(watch.share, LARGE)
    watch.share.since = 0.0
    budget.relieve(1_000.0)
    assert watch.share.expelled is None


@pytest.mark.anyio
async def test_small_requests_have_a_reserve_and_large_ones_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    budget = ByteBudget(LIMIT)
    other, late = Share(budget, lambda: None), Share(budget, lambda: None)
    assert await budget.demand(other, 10 * LIMIT) == LIMIT - LIMIT // RESERVE, "one alone gets what there is"
    async with anyio.create_task_group() as tasks:

        async def refused() -> None:
            with pytest.raises(NoRoomError):
                await budget.demand(late, LARGE)

        tasks.start_soon(refused)
        await anyio.wait_all_tasks_blocked()
        assert budget.take(Share(budget, lambda: None), REQUEST), "although a large one waits"
    assert late.held == 0
    budget.give_back(other)
    assert budget.take(late, LARGE), "one that was refused leaves nothing behind"


def test_a_new_connection_finds_room_when_large_ones_wait() -> None:
    budget = ByteBudget(LIMIT)
    large = Share(budget, lambda: None)
    assert budget.take(large, LIMIT - LIMIT // RESERVE)
    assert budget.take(Share(budget, lambda: None), CONNECTION), "a probe comes on one"
    rest = [budget.take(Share(budget, lambda: None), CONNECTION) for _ in range(LIMIT // CONNECTION)]
    assert not rest[-1]
    assert budget.held <= LIMIT - LIMIT // RESERVE // 2
    assert budget.take(Share(budget, lambda: None), REQUEST), "the rest is for requests on them"


def test_what_a_flood_leaves_is_collected_once_it_has_gone() -> None:
    class Cyclic:
        def __init__(self) -> None:
            self.itself = self

    budget, share = ByteBudget(LIMIT), Share(ByteBudget(LIMIT), lambda: None)
    assert not budget.tidy(0.0), "nothing was held"
    for began, tidies in ((100.0, True), (101.0, False), (100.0 + TIDY_S, True)):
        assert budget.take(share, LIMIT // 2 + 1)
        left = weakref.ref(Cyclic())
        assert not budget.tidy(began)
        budget.give_back(share)
        assert budget.tidy(began) is tidies
        assert (left() is None) or not tidies
    assert not budget.tidy(1_000.0)


@pytest.mark.anyio
async def test_turns_come_in_line_and_pass_those_that_left() -> None:
    turns, done = LoopTurns(), list[int]()

    async def work(number: int, scope: anyio.CancelScope) -> None:
        with scope:
            await turns.take()
            end = perf_counter() + 2 * ROUND_S
            while perf_counter() < end:
                pass
            done.append(number)

    scopes = [anyio.CancelScope() for _ in range(6)]
    async with anyio.create_task_group() as tasks:
        for number, scope in enumerate(scopes):
            tasks.start_soon(work, number, scope)
            if number in (2, 3):
                await lowlevel.checkpoint()
        for number in (4, 5):
            scopes[number].cancel()
    await turns.take()
    assert sorted(done) == [number for number in range(6) if not scopes[number].cancelled_caught]
    assert len(done) >= 4


@pytest.mark.anyio
async def test_others_have_rounds_while_many_work() -> None:
    turns, done = LoopTurns(), list[int]()

    async def work(number: int) -> None:
        await turns.take()
        end = perf_counter() + WORK_S
        while perf_counter() < end:
            pass
        done.append(number)

    rounds = 0
    async with anyio.create_task_group() as tasks:
        for number in range(MANY):
            tasks.start_soon(work, number)
        while len(done) < MANY:
            await lowlevel.checkpoint()
            rounds += 1
    assert sorted(done) == list(range(MANY))
    # Without turns: one round or two.
    assert rounds >= MANY * WORK_S / ROUND_S / 2
