"""A Volcano job from its manifest to Completed, through every actor, on every backend and journal."""

from __future__ import annotations

import gc
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from pumice.actors.metrics.summary import JobSummary
from pumice.actors.runtime.clock import VirtualClock
from pumice.core.messages.commands import BindPod, StoreRequest
from pumice.core.messages.decisions import BindContext, Decision
from pumice.core.messages.events import CycleRecord
from pumice.core.messages.replies import ApiReply
from pumice.core.plugins import PLUGINS
from pumice.core.plugins.conformance import Conformance
from pumice.core.session.session import Session
from pumice.storage.journal import Journal
from pumice.storage.memory import MemoryJournal
from pumice.storage.sqlite import SqliteJournal
from tests.actors.rig import QUICK, idle, journaled, placed, started, stored, three_nodes
from tests.kit.jobs import gang, job_task, vcjob


def the_job(duration: str) -> dict[str, Any]:
    """Six pods of which three are needed, as in Volcano's first example."""
    return vcjob("test-job", job_task("web", replicas=6, cpu="1", memory=None, duration=duration), min_available=3)


@pytest.mark.anyio
async def test_the_interpreter_is_tuned_while_a_system_runs_and_then_as_it_was() -> None:
    before = gc.get_threshold(), sys.getswitchinterval()
    async with started(MemoryJournal()) as system:
        assert gc.get_threshold() == system.settings.gc_thresholds
        assert sys.getswitchinterval() == pytest.approx(system.settings.switch_interval_s)
    assert (gc.get_threshold(), sys.getswitchinterval()) == before


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncGenerator[Journal]:
    journal: Journal = MemoryJournal() if kind == "memory" else await SqliteJournal.open(folder / "pumice.db")
    try:
        yield journal
    finally:
        await journal.close()


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_job_runs_to_its_end(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as journal:
        async with started(journal) as system:
            await system.submit([*three_nodes(), the_job("200ms")])
            await idle(system)
            assert (await system.summary()).jobs == {"default/test-job": JobSummary("Completed", bound=6)}
            assert (await system.summary()).pods.succeeded == 6
        assert (await journal.check()).whole
        first: list[CycleRecord] = [each for each in await journaled(journal, "cycle", CycleRecord) if each.decisions]
        assert [each.decisions for each in first] == [6]  # all of them in one cycle
        assert len(await journaled(journal, "decision", Decision)) == 6


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_job_cut_off_half_way_runs_to_its_end_after_a_restart(kind: str, tmp_path: Path) -> None:
    """Cancelled in the middle of its binds: some pods are on a node, some decisions have no outcome."""
    async with opened(kind, tmp_path) as journal:
        sent: list[str] = []
        half = anyio.Event()

        def api(request: StoreRequest, apply: Any, now: float) -> ApiReply:
            reply: ApiReply = apply(request, now)
            if isinstance(request, BindPod):
                sent.append(request.name)
                if len(sent) == 3:
                    half.set()
            return reply

        with anyio.CancelScope() as scope:
            async with started(journal, settings=replace(QUICK, bind_workers=1), api=api) as system:
                await system.submit([*three_nodes(), the_job("200ms")])
                await half.wait()
                scope.cancel()
        assert scope.cancelled_caught
        async with started(journal) as system:
            await idle(system)
            assert (await system.summary()).jobs["default/test-job"].phase == "Completed"
            assert len(placed(system)) == 6


@pytest.mark.trio
async def test_a_job_of_a_day_takes_no_time_on_the_virtual_clock(autojump_clock: object) -> None:
    began = anyio.current_time()
    async with started(clock=VirtualClock(), settings=replace(QUICK, schedule_period_s=None)) as system:
        await system.submit([*three_nodes(), the_job("24h")])
        await idle(system, 25 * 3600)
        (job,) = stored(system, "Job")
        assert job["status"]["state"]["phase"] == "Completed"
    assert 24 * 3600 <= anyio.current_time() - began < 24 * 3600 + 60


@pytest.mark.trio
@pytest.mark.parametrize("workers", [1, 2, 7])
async def test_where_pods_go_depends_neither_on_workers_nor_on_the_order_of_tasks(
    workers: int, autojump_clock: object
) -> None:
    """trio runs ready tasks in random order; 18 pods of three jobs go where they go all the same."""

    async def where(bind_workers: int) -> dict[str, str]:
        settings = replace(QUICK, bind_workers=bind_workers, dry_run_workers=workers, schedule_period_s=1.0)
        async with started(clock=VirtualClock(), settings=settings) as system:
            jobs = [{**the_job("0"), "metadata": {"name": f"job{number}"}} for number in range(3)]
            await system.submit([*three_nodes(), *jobs])
            await idle(system, 2 * 3600)
            return placed(system)

    assert await where(workers) == await where(4)


@pytest.mark.anyio
async def test_budgets_are_counted_without_anybody_outside() -> None:
    """Else the pdb plugin would take every budget for used up."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
    }
    async with started(MemoryJournal()) as system:
        await system.submit([*three_nodes(), budget, *gang("g", pods=3, labels={"app": "x"}, duration="0")])
        await idle(system)
        (status,) = (each["status"] for each in stored(system, "PodDisruptionBudget"))
    assert (status["currentHealthy"], status["disruptionsAllowed"]) == (3, 2)


class Marking(Conformance):
    """Has every bind carry an annotation."""

    def on_session_open(self, session: Session) -> None:
        """Register."""
        context = BindContext(annotations=(("example.com/node", "chosen"),))
        session.points.bind_context.add(self.name, lambda _: context)


@pytest.mark.anyio
async def test_what_a_plugin_has_a_bind_carry_stands_on_the_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLUGINS, "conformance", Marking)
    async with started(MemoryJournal()) as system:
        await system.submit([*three_nodes(), *gang("g", pods=3, annotations={"own": "stays"}, duration="10ms")])
        await idle(system)
        marked = [each["metadata"]["annotations"] for each in stored(system, "Pod")]
    assert len(marked) == 3
    assert all(each["example.com/node"] == "chosen" and each["own"] == "stays" for each in marked)
