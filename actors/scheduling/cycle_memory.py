# SPDX-License-Identifier: Apache-2.0
"""Memory of the session runner from cycle to cycle, and its set-up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pumice.actors.runtime.level_signal import LevelSignal
from pumice.actors.scheduling.config_source import ConfigSource
from pumice.core.messages.commands import CycleSaid
from pumice.core.messages.decisions import CycleResult
from pumice.core.objects.metadata import Object
from pumice.core.state.no_op_cycles import Recurrence


@dataclass(frozen=True, slots=True)
class Unsent:
    """A cycle that is in the journal and not yet carried out. `first`: the journal number of its first decision;
    `statuses`: its WriteStatus without events as the journal has it, empty when there is nothing to write.
    """

    result: CycleResult
    statuses: bytes
    first: int
    now: float


@dataclass
class CycleMemory:
    """State of the session runner, its only writer, which outlives the runner's restarts. `changed` is the cache's: the
    newest view version.

    `seen`: the version of the view that the newest cycle saw; before the first, that of no view yet, so that the first
    waits until the cache has looked, as Volcano's does.

    `said`: by the newest cycle, under the configuration in force. `obstacles`: plugin -> why it refuses every job, in
    the newest cycle; `troubles`: plugin -> the process that it could not ask.

    `cycle`: the newest in the journal; `done`: the newest that has been carried out. What it begins with is what the
    journal held before any actor was started.
    """

    changed: LevelSignal
    cycle: int
    done: int
    carry: Object
    seen: int
    wake_at: float | None = None
    unsent: Unsent | None = None
    lost: int = 0
    lost_in_a_row: int = 0
    said: CycleSaid = field(default_factory=CycleSaid)
    obstacles: dict[str, str] = field(default_factory=dict[str, str])
    recurrence: Recurrence = field(default_factory=Recurrence)
    troubles: dict[str, str] = field(default_factory=dict[str, str])


SEEN: Final = 1
SYNCED: Final = 2
PERMITTED: Final = 3
LOST: Final = 4
"""Levels of the permission to schedule: the cluster was seen as a whole; it is here and no other scheduler works on it;
one may; there is none any more and never will be in this process.
"""


@dataclass(frozen=True)
class RunnerSettings:
    """Settings of the runner. `fixed_period_s`: instead of the configuration's. `serves_others`: the pods of
    Kubernetes' own scheduler, too. `stopwatch` (seconds) feeds the metrics and nothing else. No cycle begins before
    `permission` is at PERMITTED.
    """

    source: ConfigSource
    fixed_period_s: float | None
    seed: int
    serves_others: bool
    stopwatch: Callable[[], float]
    permission: LevelSignal | None
    reload_s: float = 1.0

    @property
    def period_s(self) -> float:
        """Return the least time from the end of a cycle to the start of the next."""
        configured = self.source.loaded.config.pumice.schedule_period_s
        return configured if self.fixed_period_s is None else self.fixed_period_s

    async def permitted(self) -> bool:
        """Wait until this process may schedule; False when it may not any more."""
        # LOST lies beyond as well: the wait ends then, and the answer is no.
        return self.permission is None or await self.permission.wait_beyond(PERMITTED - 1) == PERMITTED
