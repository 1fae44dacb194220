"""A cluster that is scheduled from elsewhere and mirrored elsewhere, over ways on which everything goes wrong: in the
end every job has run, no node had more than its room, and the mirror has what is there. On virtual time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from random import Random

import anyio
import pytest
from trio.testing import MockClock

from pumice.actors.gateway.settings import GatewaySettings, listen
from pumice.actors.real_clusters.mirror.settings import MirrorSettings, ShadowSettings
from pumice.actors.real_clusters.scheduled.settings import ClusterSettings
from pumice.actors.runtime.clock import VirtualClock
from pumice.actors.system.settings import SystemSettings, mirrored, scheduling_there
from pumice.actors.system.system import System
from pumice.config.kubeconfig import ClusterAccess
from pumice.core.messages.commands import Delete
from pumice.core.messages.decisions import Bind
from pumice.core.objects.metadata import Object
from pumice.questions.replay.verify import verify
from pumice.storage.journal import Journal
from pumice.storage.memory import MemoryJournal
from tests.actors.real_clusters.mirror.rig import decided, shown
from tests.actors.real_clusters.scheduled.in_process import in_process
from tests.actors.real_clusters.scheduled.rig import KilledError, ends_with, phase_is
from tests.actors.real_clusters.scheduled.stormy_way import WATCHES, WRITES, StormyWay
from tests.actors.rig import started, stored, three_nodes
from tests.kit.jobs import job_task, vcjob

KINDS = ("Node", "Queue", "PodGroup", "Pod", "Job")
ACCESS = ClusterAccess("http://127.0.0.1")
PATIENCE_S = 3600.0
CPU = 8
SHARE = 0.3


class Elsewhere:
    """A system that follows a cluster from outside. It is killed after each of `lives` (seconds) and begins again."""

    def __init__(self, settings: SystemSettings, clock: VirtualClock, lives: Sequence[float]) -> None:
        self.journal = MemoryJournal()
        self.running: System | None = None
        self._settings, self._clock, self._lives = settings, clock, lives

    async def run(self) -> None:
        for life_s in self._lives:
            with ends_with(KilledError):
                async with started(self.journal, settings=self._settings, clock=self._clock):
                    await anyio.sleep(life_s)
                    raise KilledError
            self.journal.reopen()
        async with started(self.journal, settings=self._settings, clock=self._clock) as self.running:
            await anyio.sleep_forever()


def jobs() -> list[Object]:
    """More than there is room for at the same time; gangs of up to six pods."""
    return [
        vcjob(f"j{number}", job_task(replicas=1 + number % 6, cpu=str(1 + number % 3), duration=f"{2 + number}s"))
        for number in range(12)
    ]


async def watch_room(there: System) -> None:
    """Nobody is put where there is no room, at any time."""
    while True:
        used = Counter[str]()
        for pod in stored(there, "Pod"):
            if pod["spec"].get("nodeName") and pod["status"].get("phase") in ("Pending", "Running"):
                asks = [each["resources"]["requests"]["cpu"] for each in pod["spec"]["containers"]]
                used[pod["spec"]["nodeName"]] += sum(map(int, asks))
        assert all(amount <= CPU for amount in used.values()), used
        await anyio.sleep(0.25)


async def submit_and_wait(there: System) -> None:
    """Job after job; one of them is deleted while it runs or waits."""
    for obj in jobs():
        await there.submit([obj])
        await anyio.sleep(1.0)
    await there.api.ask(Delete("Job", "default", "j7"))
    with anyio.fail_after(PATIENCE_S):
        while not all(phase_is("Completed")(job) for job in stored(there, "Job")):  # noqa: ASYNC110
            await anyio.sleep(0.5)


async def until_same(there: System, mirror: Elsewhere) -> None:
    with anyio.fail_after(PATIENCE_S):
        while mirror.running is None or await shown(there, KINDS) != await shown(mirror.running, KINDS):  # noqa: ASYNC110
            await anyio.sleep(1.0)


def settings(ways: Sequence[StormyWay]) -> Iterator[SystemSettings]:
    """Of a scheduler and of a mirror."""
    here = SystemSettings(schedule_period_s=1.0, check_view=True)
    yield scheduling_there(ClusterSettings(ACCESS, transport=ways[0]), here)
    yield mirrored(MirrorSettings(ACCESS, transport=ways[1], shadow=ShadowSettings()), SystemSettings())


async def lived(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, chance = VirtualClock(), Random(seed)
    ways, both, bound = list[StormyWay](), list[Elsewhere](), dict[str, str]()
    with listen("127.0.0.1", 0) as listener:
        there_settings = SystemSettings(scheduler=False, gateway=GatewaySettings(listener))
        async with (
            in_process(monkeypatch) as way_to,
            started(settings=there_settings, clock=clock) as there,
            anyio.create_task_group() as tasks,
        ):
            await there.submit(three_nodes())
            ways += [StormyWay(way_to(listener.getsockname()[1]), each, SHARE) for each in (seed, -seed)]
            for each in settings(ways):
                both.append(Elsewhere(each, clock, [chance.uniform(1.0, 15.0) for _ in range(2)]))
                tasks.start_soon(both[-1].run)
            tasks.start_soon(watch_room, there)
            await submit_and_wait(there)
            ways[1].calm = True
            await until_same(there, both[1])
            bound |= {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in stored(there, "Pod")}
            tasks.cancel_scope.cancel()
    assert ways[1].writes == []
    assert len(ways[0].struck) >= len({*WRITES, *WATCHES}) - 2, f"hardly anything struck: {ways[0].struck}"
    await check(both[0].journal, both[1].journal, bound)


async def check(scheduler: Journal, mirror: Journal, bound: dict[str, str]) -> None:
    """What the two wrote down is what happened, once."""
    made = {each.name: each.node for each in await decided(scheduler) if isinstance(each, Bind)}
    assert {name: made.get(name) for name in bound} == bound
    seen = [each.uid for each in await decided(mirror) if isinstance(each, Bind)]
    assert len(seen) == len(set(seen)), "every bind was seen once"
    assert (await verify(scheduler)).first_difference is None


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_whatever_goes_wrong_on_the_way_costs_nothing_but_time(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    main = partial(lived, seed, monkeypatch)
    anyio.run(main, backend="trio", backend_options={"clock": MockClock(autojump_threshold=0)})
