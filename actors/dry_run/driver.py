"""Driving an action that stops at dry runs: each goes out to the workers, the action goes on with what they found.

Not an actor: the worker of such an action holds it. A dry run lies on a shelf while it is asked about, and chunks carry
its number there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage import codec

if TYPE_CHECKING:
    from actors.dry_run.pool import DryRunPool, Finding
    from actors.runtime.shelf import HandleTable
    from actors.scheduling.decider import DryRunLike, Steps

TRY_ROWS = "try-rows"
"""The function a chunk names; its argument is the number on the shelf, as MessagePack."""


class DryRunDriver:
    """`shelf`: where the workers of the pool find what a chunk is about."""

    def __init__(self, pool: DryRunPool, shelf: HandleTable[DryRunLike]) -> None:
        self._pool = pool
        self._shelf = shelf

    async def drive(self, steps: Steps) -> None:
        """Run the action to its end. Raises what it raises, and DryRunLostError."""
        try:
            asked = next(steps)
            while True:
                asked = steps.send(asked.read(await self._findings(asked)))
        except StopIteration:
            return

    async def _findings(self, asked: DryRunLike) -> list[Finding]:
        number = self._shelf.put(asked)
        try:
            return await self._pool.run(TRY_ROWS, codec.pack(number), len(asked.nodes), asked.want)
        finally:
            self._shelf.drop(number)  # a chunk that is still in a mailbox is not worth trying any more
