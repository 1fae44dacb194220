# SPDX-License-Identifier: Apache-2.0
"""Garbage collection for work that makes many objects and drops few: rarely, as in the running scheduler, or not at
all.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

RARELY: Final = (1_000_000, 50, 100)


@contextmanager
def rarely() -> Generator[None]:
    """Collect rarely: Python's stock thresholds cost a replay a quarter of its speed."""
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def keeping() -> Generator[None]:
    """Keep the objects made in the block: the collector skips them while they grow (a tenth of `decide`) and
    afterwards."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
