# SPDX-License-Identifier: Apache-2.0
"""Settings of the C library's allocator for a process that lives long.

Of what comes and goes here the largest are pieces of megabytes (checkpoints, listings, columns), among small things
that stay. glibc learns to take ever larger ones from the heap, where holes are left between what stays, and gives each
thread a heap of its own, which brings nothing to Python's threads, since one runs at a time. After eight minutes of
churn on 5,000 nodes (docs/explanation/soak.md) the main heap was 174 MB with these settings and 213 without; of these
130 to 140 were in use.

Holes arise all the same, 2 MB a minute of that load: what goes is never quite the size of what stays. So the
pages in them are given back thrice a minute: after a flood of clients memory is to return soon.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Final

import anyio

EACH_S: Final = 20.0
"""To give back the pages of 50 MB of holes takes 15 ms."""
MIB: Final = 1 << 20
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Numbers of glibc's `malloc.h`."""
SETTINGS: Final = {
    M_ARENA_MAX: ("MALLOC_ARENA_MAX", 1),
    M_MMAP_THRESHOLD: ("MALLOC_MMAP_THRESHOLD_", MIB // 4),
    M_TRIM_THRESHOLD: ("MALLOC_TRIM_THRESHOLD_", 8 * MIB),
}
"""Larger pieces come from the system and go back to it; so much may be free at the end of the heap. By what a user sets
in the environment nothing is changed.
"""


def live_long() -> bool:
    """Set the allocator. False where it does not exist: then nothing needs to be done."""
    mallopt = _function("mallopt")
    if mallopt is None:
        return False
    for number, (name, value) in SETTINGS.items():
        if name not in os.environ:
            mallopt(number, value)
    return True


async def give_back() -> None:
    """Give the system the free pages in the midst of the heap, thrice a minute of the real clock, until cancelled."""
    # Only glibc has it: elsewhere (macOS, musl) this task ends immediately.
    trim = _function("malloc_trim")
    while trim:
        await anyio.sleep(EACH_S)
        trim(0)


def _function(name: str) -> Callable[..., int] | None:
    """Return a function of the C library, where that has it."""
    return getattr(ctypes.CDLL(None), name, None) if os.name == "posix" else None
