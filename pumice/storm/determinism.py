"""The order in which trio runs what is ready, from a seed: the one module that touches trio's two private names.

trio shuffles ready tasks on purpose. With its random source seeded and its switch on (what Hypothesis does), a program
that waits for nothing outside runs the same way every time, in every process.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, cast

import trio._core._run as trio_run

SWITCH: Final = "_ALLOW_DETERMINISTIC_SCHEDULING"
SOURCE: Final = "_r"


def source() -> random.Random:
    """trio's random source. AttributeError when trio keeps it elsewhere."""
    return cast("random.Random", getattr(trio_run, SOURCE))


@contextmanager
def deterministic(seed: int) -> Generator[None]:
    """Within the block trio's order is a function of the seed; afterwards everything is as it was."""
    allowed, state = getattr(trio_run, SWITCH), source().getstate()
    setattr(trio_run, SWITCH, True)
    source().seed(seed)
    try:
        yield
    finally:
        setattr(trio_run, SWITCH, allowed)
        source().setstate(state)
