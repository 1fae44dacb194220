"""Whatever happens between a cluster and its mirror: the same objects in the end, every bind once, nothing written."""

from collections.abc import Sequence

import anyio
import pytest

from pumice.core.messages.commands import Delete
from pumice.core.messages.decisions import Bind
from pumice.storage.memory import MemoryJournal
from tests.actors.real_clusters.mirror.border import FaultyWay
from tests.actors.real_clusters.mirror.rig import cluster, decided, mirror, names, same
from tests.actors.rig import idle, placed, three_nodes
from tests.kit.jobs import job_task, vcjob

pytestmark = pytest.mark.anyio
ALL = ("Node", "Queue", "PodGroup", "Pod", "Job")
WAVES: Sequence[tuple[str, str]] = (("a", "0"), ("b", "50ms"), ("c", "0"), ("d", "0"))
FAULTS = {"late", "lost", "throttled", "failing", "expired", "expired later", "reset", "truncated"}


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
async def test_faults_at_the_border_cost_nothing_but_time(seed: int) -> None:
    journal, way = MemoryJournal(), FaultyWay(seed)
    async with cluster() as web:
        way.port = web.settings.address[1]
        async with mirror(way, journal) as here:
            await web.system.submit(three_nodes())
            await same(here, web.system, "Node")  # of what is bound at the first look nobody knows when
            for name, duration in WAVES:
                await web.system.submit([vcjob(name, job_task(replicas=2, cpu="100m", duration=duration))])
                await idle(web.system)
                await anyio.sleep(0.1)
            await web.system.api.ask(Delete("Job", "default", "c"))
            await idle(web.system)
            await same(here, web.system, *ALL)
            bound = placed(web.system)
        await way.close()
    assert way.writes == []
    there = set(names(await decided(journal), Bind))
    assert there >= set(bound), "what is bound was seen to be bound"
    assert len(names(await decided(journal), Bind)) == len(there), "and once"
    assert len(way.struck) >= len(FAULTS) - 2, f"hardly anything struck: {way.struck}"
