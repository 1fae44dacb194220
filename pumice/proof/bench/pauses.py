# SPDX-License-Identifier: Apache-2.0
"""Pauses of the event loop: the longest time between two turns of a task that wants one a millisecond."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import anyio

PERIOD_S: Final = 0.001


@dataclass(slots=True)
class Pauses:
    """The longest pause on the clock, and the most processor time between two turns.

    The first also holds what other processes on the machine took away; the second is the loop's own doing.
    """

    longest_s: float = 0.0
    longest_cpu_s: float = 0.0

    async def watch(self) -> None:
        """Measure until cancelled."""
        clock, cpu = time.perf_counter(), time.thread_time()
        while True:
            await anyio.sleep(PERIOD_S)
            later, later_cpu = time.perf_counter(), time.thread_time()
            self.longest_s = max(self.longest_s, later - clock - PERIOD_S)
            self.longest_cpu_s = max(self.longest_cpu_s, later_cpu - cpu)
            clock, cpu = later, later_cpu


@asynccontextmanager
async def pauses() -> AsyncGenerator[Pauses]:
    """Measure the pauses while the block runs."""
    found = Pauses()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(found.watch)
        yield found
        tasks.cancel_scope.cancel()
