"""What pages are told, without a server: once for all, and everything anew for who is behind."""

from __future__ import annotations

from typing import Any, cast

import anyio
import numpy as np
import pytest

from pumice.actors.gateway.page import broadcast
from pumice.actors.gateway.page.broadcast import Broadcast
from pumice.core.messages.boards import BoardLayout, BoardRead, ReadBoard, ReadRecent, RecentRead

pytestmark = pytest.mark.anyio


class FakeCache:
    """One node, of which more is used each time it is asked."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.version, self.asked, self.seconds = 0, list[ReadBoard](), seconds

    async def ask(self, message: ReadBoard | ReadRecent) -> Any:
        if isinstance(message, ReadRecent):
            return RecentRead()
        self.asked.append(message)
        self.version += 1
        amounts = _bytes([float(self.version), 0.0, 0.0, 0.0])
        layout = BoardLayout(["cpu"], ["n0"], [[]], [0], b"\0", b"\1", _bytes([8.0]))
        return BoardRead(self.version, 1, None if message.layout == 1 else layout, amounts, seconds=self.seconds)


def _bytes(numbers: list[float]) -> bytes:
    return np.array(numbers).tobytes()


async def test_nothing_is_read_while_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast, "PERIOD_S", 0.001)
    monkeypatch.setattr(broadcast, "LATEST_S", 0.001)
    cache = FakeCache()
    pages = Broadcast(cast("Any", cache), cast("Any", cache), None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pages.keep)
        await anyio.sleep(0.02)
        assert cache.asked == []
        with pages.listening():
            await pages.after(0)
        await anyio.sleep(0.05)
        seen = len(cache.asked)
        await anyio.sleep(0.05)
        assert len(cache.asked) == seen
        with pages.listening():
            await pages.after(pages.news.value)
            assert cache.asked[seen] == ReadBoard()  # what was told before is forgotten
        tasks.cancel_scope.cancel()


def _no_rest(spent: float, busy: float) -> float:
    return 0.001


async def test_changes_follow_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast, "rest_s", _no_rest)
    cache = FakeCache()
    pages = Broadcast(cast("Any", cache), cast("Any", cache), None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pages.keep)
        with pages.listening():
            position, whole = await pages.after(0)
            assert whole.startswith(b"event: board\n")
            _, change = await pages.after(position)
            assert change.startswith(b"event: change\n")
            await pages.after(position + 2 * broadcast.KEPT)
            _, anew = await pages.after(position)
            assert anew.startswith(b"event: board\n")
        tasks.cancel_scope.cancel()


async def test_what_reading_costs_is_rested_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast, "PERIOD_S", 0.001)
    monkeypatch.setattr(broadcast, "LATEST_S", 0.001)
    cache = FakeCache(seconds=0.01)
    pages = Broadcast(cast("Any", cache), cast("Any", cache), None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pages.keep)
        with pages.listening():
            await anyio.sleep(0.4)
        tasks.cancel_scope.cancel()
    assert len(cache.asked) == 2


async def test_the_first_picture_is_not_rested_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of five thousand nodes takes long, and is made once."""
    monkeypatch.setattr(broadcast, "PERIOD_S", 0.001)
    cache = FakeCache(seconds=0.1)
    pages = Broadcast(cast("Any", cache), cast("Any", cache), None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pages.keep)
        with pages.listening():
            position, _ = await pages.after(0)
            with anyio.fail_after(2):
                await pages.after(position)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("spent", "busy", "seconds"),
    [
        (0.0, 0.5, broadcast.PERIOD_S),
        (0.01, 1.0, 1.0),  # a hundred times as long
        (0.01, 0.5, 2.0),  # … of work
        (0.004, 0.01, broadcast.LATEST_S),  # … or three seconds, where there is little
        (0.01, 7.0, 1.0),  # several threads make the loop no faster
        (0.06, 1.0, broadcast.LATEST_S),
        (0.1, 1.0, 5.0),  # of the loop it is a fiftieth at most, however long it takes
    ],
)
def test_how_long_is_rested(spent: float, busy: float, seconds: float) -> None:
    assert broadcast.rest_s(spent, busy) == pytest.approx(seconds)


def test_work_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([(10.0, 1.0), (12.0, 2.0), (12.0, 2.0)])
    now = [0.0, 0.0]

    def at() -> float:
        now[:] = next(moments)
        return now[0]

    monkeypatch.setattr(broadcast, "perf_counter", at)
    monkeypatch.setattr(broadcast, "process_time", lambda: now[1])
    work = broadcast.ProcessWork()
    assert (work.busy(), work.busy()) == (0.5, 0.0)
