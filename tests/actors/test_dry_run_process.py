"""Dry runs in processes: the cycles decide the same as in one process, also when processes are killed or stop dead, and
no process is left behind.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from actors import dry_run_process
from actors.dry_run_process import DryRunProcess
from actors.settings import SystemSettings
from actors.system import System
from core.messages.commands import Chunk
from core.messages.replies import Candidates, DryRunFailed
from tests.actors.test_same_candidates import CONFIG, Outcome, live_through

Befalls = Callable[[int, int], None]
"""What happens to a process before it is asked: (its id, how many chunks there have been)."""


def settings(processes: int = 2, **more: Any) -> SystemSettings:
    config = f"{CONFIG}- name: pumice\n  arguments: {{dryRunProcesses: {processes}}}\n"
    return SystemSettings(config_text=config, schedule_period_s=3600.0, dry_run_chunk_rows=4, **more)


@pytest.fixture(scope="module")
def expected() -> Outcome:
    """One worker in this process."""
    return anyio.run(live_through, settings(0, dry_run_workers=1), list[System]())


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids of all processes that are started."""
    ids: list[int] = []
    start = getattr(dry_run_process, "_started")  # noqa: B009

    async def noted() -> Any:
        process = await start()
        ids.append(process.pid)
        return process

    monkeypatch.setattr(dry_run_process, "_started", noted)
    return ids


def stricken(monkeypatch: pytest.MonkeyPatch, befalls: Befalls) -> list[int]:
    """Has something befall the processes; the ids of those that were asked, one for each chunk."""
    asked: list[int] = []
    handle = DryRunProcess.handle

    async def handled(self: DryRunProcess, message: Chunk) -> Candidates | DryRunFailed:
        process = getattr(self, "_process")  # noqa: B009
        asked.append(process.pid)
        befalls(process.pid, len(asked))
        return await handle(self, message)

    monkeypatch.setattr(DryRunProcess, "handle", handled)
    return asked


def alive(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_processes_decide_the_same(
    monkeypatch: pytest.MonkeyPatch, expected: Outcome, processes: list[int], backend: str
) -> None:
    asked = stricken(monkeypatch, lambda _, __: None)
    assert anyio.run(live_through, settings(), list[System](), backend=backend) == expected
    assert len(asked) > 20
    assert set(asked) == set(processes)
    assert len(processes) == 2
    assert not any(map(alive, processes))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_killed_processes_are_replaced(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    expected: Outcome,
    processes: list[int],
    backend: str,
) -> None:
    def befalls(process: int, chunk: int) -> None:
        if chunk in (1, 7, 12):
            os.kill(process, signal.SIGKILL)

    stricken(monkeypatch, befalls)
    assert anyio.run(live_through, settings(), list[System](), backend=backend) == expected
    assert len(processes) == 5
    assert not any(map(alive, processes))
    crashes = [record.message for record in caplog.records if "crashed" in record.message]
    assert len(crashes) == 3
    assert all("its process has ended, killed by SIGKILL" in crash for crash in crashes)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_process_that_does_not_answer_is_replaced(
    monkeypatch: pytest.MonkeyPatch, expected: Outcome, processes: list[int], backend: str
) -> None:
    def befalls(process: int, chunk: int) -> None:
        if chunk == 9:
            os.kill(process, signal.SIGSTOP)

    stricken(monkeypatch, befalls)
    quick = settings(dry_run_deadline_s=3.0)
    assert anyio.run(live_through, quick, list[System](), backend=backend) == expected
    assert len(processes) == 3
    assert not any(map(alive, processes))


@pytest.mark.anyio
async def test_no_process_outlives_a_system_that_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, processes: list[int]
) -> None:
    """In the middle of an answer that never comes."""
    cut_off = anyio.Event()

    def befalls(process: int, chunk: int) -> None:
        os.kill(process, signal.SIGSTOP)
        cut_off.set()

    stricken(monkeypatch, befalls)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(live_through, settings(), list[System]())
        await cut_off.wait()
        tasks.cancel_scope.cancel()
    assert len(processes) == 2
    assert not any(map(alive, processes))


@pytest.mark.anyio
async def test_a_process_ends_when_whoever_started_it_is_gone(processes: list[int]) -> None:
    """Nothing is left that could tell it: its input ends, and so does it."""
    process = await getattr(dry_run_process, "_started")()  # noqa: B009
    await process.stdin.aclose()
    with anyio.fail_after(20):
        assert await process.wait() == 0
    await process.aclose()
