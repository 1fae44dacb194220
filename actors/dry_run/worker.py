# SPDX-License-Identifier: Apache-2.0
"""A dry-run worker: tries a chunk of candidates with a pure function. There are several, see `actors.dry_run.pool`.

Owns: nothing.
Accepts: `Chunk`; answers `Candidates`, or `DryRunFailed` when the function raised.
Sends: nothing.
When full: the pool waits; it gives a worker one chunk at a time.
Stops: after the chunk in hand. A crash or a hang costs the chunk, which the pool gives to another worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from pumice.actors.runtime.actor import Actor
from pumice.core.messages.commands import Chunk
from pumice.core.messages.replies import Candidates, DryRunFailed

if TYPE_CHECKING:
    from pumice.actors.runtime.actor import Context
    from pumice.actors.system.ports import DryRunPort

TryRows = Callable[[bytes, int, int], Iterable[tuple[int, bytes]]]
"""(argument, first row, last row + 1) -> findings in row order. Reads only; every worker gives the same answer."""


class DryRunWorker(Actor[Chunk, Candidates | DryRunFailed]):
    """A dry-run worker. `functions`: those that a chunk may name."""

    def __init__(self, name: str, mailbox: DryRunPort, context: Context, *, functions: Mapping[str, TryRows]) -> None:
        super().__init__(name, mailbox, context)
        self._functions = functions

    async def handle(self, message: Chunk) -> Candidates | DryRunFailed:
        """Run the function over the rows of the chunk; it stops early once it has `want` findings."""
        function = self._functions.get(message.function)
        if function is None:
            return DryRunFailed(message.request, message.chunk, f"no dry run is called {message.function!r}")
        try:
            found = function(message.argument, message.first, message.last)
            return Candidates(message.request, message.chunk, tuple(islice(found, message.want or None)))
        except Exception as error:  # noqa: BLE001 - whatever the function raises is the answer
            return DryRunFailed(message.request, message.chunk, repr(error))
