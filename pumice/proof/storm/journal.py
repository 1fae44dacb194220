"""The journal of a storm: what is written is seen by the monitor, and writing may be slow or fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio

from pumice.actors.api_server.faults.strikes import Faults
from pumice.proof.storm.disk import StormDisk
from pumice.storage.journal import Record
from pumice.storage.memory import MemoryJournal


class JournalLostError(OSError):
    """An injected failure of the disk."""


class StormJournal(MemoryJournal):
    """`see` gets every batch of records once it is written; `faults` may be set for each life of a system."""

    def __init__(self, see: Callable[[Sequence[Record]], None], disk: StormDisk | None = None) -> None:
        super().__init__()
        self._disk = disk or StormDisk(0)
        self.faults: Faults | None = None
        self._see = see

    async def append(self, records: Sequence[Record]) -> int:
        """Write at once, late, in part, not at all, or without saying so. A power cut finds the disk at a slow one."""
        fault = self.faults.strike_append() if self.faults is not None else None
        match fault.what if fault is not None else "":
            case "journal-slow":
                self._disk.write(records)
                await anyio.sleep(fault.amount if fault is not None else 0.0)
                self._disk.sync()
            case "journal-torn":
                self._disk.write(records)
                raise JournalLostError("injected: the power failed while the disk was at it")
            case "journal-failing":
                raise JournalLostError("injected: the disk is full")
            case "journal-unsure":
                await self._write(records)
                raise JournalLostError("injected: the disk failed after writing")
            case _:
                pass
        return await self._write(records)

    async def begin_again(self) -> None:
        """Another process finds what the disk has, and of what was on its way what is whole."""
        if records := self._disk.lose_power():
            await self._write(records)

    async def _write(self, records: Sequence[Record]) -> int:
        last = await super().append(records)
        self._see(records)
        return last
