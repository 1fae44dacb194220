# SPDX-License-Identifier: Apache-2.0
"""The dry-run workers of a system and the drivers of dry runs: their shared parts, in one place.

Not an actor: `pumice.actors.system.system` and the benchmarks hold it, and put its actors under a supervisor.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pumice.actors.dry_run.pool import TRY_ROWS, DryRunDriver, DryRunPool, Finding
from pumice.actors.dry_run.worker import DryRunWorker
from pumice.cluster.handles import HandleTable
from pumice.core.actions.dry_runs import DryRun
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actors.runtime.actor import Context
    from pumice.actors.scheduling.decider import DryRunLike
    from pumice.actors.system.ports import DryRunPort, SupervisorPort
    from pumice.actors.system.settings import SystemSettings


class DryRunCrew:
    """The drivers and workers of dry runs. A dry run has a handle while it is asked about, which chunks carry."""

    def __init__(self, settings: SystemSettings) -> None:
        self._settings = settings
        self.handles: HandleTable[DryRunLike] = HandleTable(DryRun)

    def worker(self, name: str, mailbox: DryRunPort, context: Context) -> DryRunWorker:
        """Return a worker that tries rows on the very session that the action works on, which only waits meanwhile."""
        return DryRunWorker(name, mailbox, context, functions={TRY_ROWS: partial(_try_rows, self.handles)})

    def driver(self, workers: Sequence[DryRunPort], supervisor: SupervisorPort) -> DryRunDriver:
        """Return a driver for the worker of an action; `supervisor` as the pool takes it."""
        rows, deadline_s = self._settings.dry_run_chunk_rows, self._settings.dry_run_deadline_s
        return DryRunDriver(DryRunPool(workers, supervisor, chunk_rows=rows, deadline_s=deadline_s), self.handles)


def _try_rows(handles: HandleTable[DryRunLike], argument: bytes, first: int, last: int) -> Sequence[Finding]:
    """Try rows of a dry run. Raises KeyError when its driver no longer waits for them."""
    return handles.get(codec.unpack(argument)).try_rows(first, last)
