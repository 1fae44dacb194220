"""Kubernetes' own scheduler beside Volcano's: its cycle follows one of Volcano's in which its pods were waiting.

Part of the session runner, which holds it. What Volcano's cycle decided is assumed by then, so it looks at nodes as
they will be, and the next cycle of Volcano's sees what it decided in the same way. A cycle in which nothing is decided
and nothing new is said leaves no record.

While room is being made for one of its pods, it also has a turn before Volcano's. kube-scheduler does not wait for a
period: it is woken when its victims have gone. Were Volcano's always first, the pods that are made anew in the place of
the victims would have the room again, and so on for ever.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pumice.actors.errors import CycleLostError
from pumice.actors.runtime.asking import expected
from pumice.actors.scheduling.cycle_record import record_of
from pumice.actors.scheduling.decider import Moment
from pumice.core.default_scheduler.profile import NAME
from pumice.core.messages.commands import TakeSnapshot
from pumice.core.messages.replies import SnapshotTaken
from pumice.core.state.volumes import volume_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actors.runtime.clock import Clock
    from pumice.actors.scheduling.commit import Commit
    from pumice.actors.scheduling.config_source import LoadedConfig
    from pumice.actors.scheduling.cycle_memory import CycleMemory
    from pumice.actors.scheduling.decider import Decider
    from pumice.actors.system.ports import CachePort
    from pumice.cluster.handles import HandleTable
    from pumice.core.objects.pod import Task
    from pumice.core.state.snapshot import Snapshot

log = logging.getLogger(__name__)


class OtherScheduler:
    """Takes its turn when the session runner says so."""

    def __init__(
        self, *, cache: CachePort, commit: Commit, decider: Decider, snapshots: HandleTable[Snapshot], clock: Clock
    ) -> None:
        self._cache = cache
        self._commit = commit
        self._decider = decider
        self._snapshots = snapshots
        self._clock = clock
        self._makes_room = False

    async def before(self, loaded: LoadedConfig, memory: CycleMemory, seed: int) -> None:
        """The turn before a cycle of Volcano's."""
        if self._makes_room:
            await self._cycle(loaded, memory, seed)

    async def after(self, loaded: LoadedConfig, memory: CycleMemory, seed: int, waiting: Sequence[Task]) -> None:
        """The turn after a cycle of Volcano's, in whose snapshot these pods of its own were waiting."""
        self._makes_room = any(task.nominated for task in waiting)
        if waiting:
            await self._cycle(loaded, memory, seed)

    async def _cycle(self, loaded: LoadedConfig, memory: CycleMemory, seed: int) -> None:
        """One cycle from snapshot to commit."""
        asked = TakeSnapshot(memory.seen, memory.cycle + 1, volume_rules(loaded.config))
        taken = expected(await self._cache.ask(asked), SnapshotTaken)
        moment = Moment(memory.cycle + 1, self._clock.now(), seed)
        try:
            result = self._decider.decide_others(
                self._snapshots.take(taken.handle), loaded.config, moment, memory.carry
            )
        except Exception as error:
            log.exception("bug in Pumice: a cycle of %s", NAME)
            raise CycleLostError(f"{NAME}: {error!r}") from error
        if not (result.binds or result.evicts or result.pod_conditions):
            return
        self._makes_room = self._makes_room or bool(result.evicts)
        record = record_of(taken, loaded.digest, moment, result, memory.carry, scheduler=NAME)
        await self._commit.record(record, result, memory)
        await self._commit.carry_out(memory)
