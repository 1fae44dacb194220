"""Who schedules a cluster elsewhere begins when it may, and no more once it may not."""

from __future__ import annotations

import anyio
import pytest

from pumice.actors.runtime.level_signal import LevelSignal
from pumice.actors.scheduling.config_source import ConfigSource
from pumice.actors.scheduling.cycle_memory import LOST, PERMITTED, SEEN, SYNCED, RunnerSettings

pytestmark = pytest.mark.anyio


def told_by(permission: LevelSignal | None) -> RunnerSettings:
    return RunnerSettings(ConfigSource(""), None, 0, True, lambda: 0.0, permission)


async def test_no_cycle_begins_before_the_permission_and_none_after_its_loss() -> None:
    """That the cluster was seen, and that it is here, is none yet."""
    permission, found = LevelSignal(), list[bool]()
    settings = told_by(permission)

    async def wait() -> None:
        found.append(await settings.permitted())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        for level in (SEEN, SYNCED):
            permission.raise_to(level)
            await anyio.wait_all_tasks_blocked()
            assert found == []
        permission.raise_to(PERMITTED)
    assert found == [True]
    assert await settings.permitted()
    permission.raise_to(LOST)
    assert not await settings.permitted()


async def test_who_schedules_the_cluster_that_is_here_needs_no_permission() -> None:
    assert await told_by(None).permitted()
