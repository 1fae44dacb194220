"""Driving an action that stops at dry runs: each goes out to the workers, the action goes on with what they found.

Not an actor: the worker of such an action holds it. A dry run has a handle while it is asked about, which chunks carry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.storage import codec

if TYPE_CHECKING:
    from pumice.actors.dry_run.pool import DryRunPool, Finding
    from pumice.actors.scheduling.decider import DryRunLike, Steps
    from pumice.cluster.handles import HandleTable

TRY_ROWS = "try-rows"
"""The function a chunk names; its argument is the handle, as MessagePack."""


class DryRunDriver:
    """`handles`: where the workers of the pool find what a chunk is about."""

    def __init__(self, pool: DryRunPool, handles: HandleTable[DryRunLike]) -> None:
        self._pool = pool
        self._handles = handles

    async def drive(self, steps: Steps) -> None:
        """Run the action to its end. Raises what it raises, and DryRunLostError."""
        try:
            asked = next(steps)
            while True:
                asked = steps.send(asked.read(await self._findings(asked)))
        except StopIteration:
            return

    async def _findings(self, asked: DryRunLike) -> list[Finding]:
        number = self._handles.put(asked)
        try:
            return await self._pool.run(TRY_ROWS, codec.pack(number), len(asked.nodes), asked.want)
        finally:
            self._handles.drop(number)  # a chunk that is still in a mailbox is not worth trying any more
