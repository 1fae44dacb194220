"""The order in which trio runs what is ready, from a seed: the one module that touches trio's three private names.

trio shuffles ready tasks on purpose. With its random source seeded and its switch on (what Hypothesis does), a program
that waits for nothing outside runs the same way every time, in every process. Nor need it ask at every turn of its loop
what has come from outside, which costs as much as the turn.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final, cast

import trio._core._run as trio_run

SWITCH: Final = "_ALLOW_DETERMINISTIC_SCHEDULING"
SOURCE: Final = "_r"
OUTSIDE: Final = "TheIOManager"
TURNS: Final = 32
"""So many turns of the loop from one look outside to the next: Ctrl-C comes from there, and the end of the loop."""


def source() -> random.Random:
    """trio's random source. AttributeError when trio keeps it elsewhere."""
    return cast("random.Random", getattr(trio_run, SOURCE))


@contextmanager
def deterministic(seed: int) -> Generator[None]:
    """Within the block trio's order is a function of the seed; afterwards everything is as it was."""
    allowed, state = getattr(trio_run, SWITCH), source().getstate()
    outside = getattr(trio_run, OUTSIDE)
    look = outside.get_events
    setattr(trio_run, SWITCH, True)
    source().seed(seed)
    outside.get_events = _seldom(look)
    try:
        yield
    finally:
        outside.get_events = look
        setattr(trio_run, SWITCH, allowed)
        source().setstate(state)


def _seldom(look: Callable[[Any, float], Any]) -> Callable[[Any, float], Any]:
    """Looks outside where trio would wait for it, and at one in TURNS of the turns when it would not."""
    turns = count(1)

    def get_events(io: Any, timeout: float) -> Any:
        return look(io, timeout) if timeout > 0 or next(turns) % TURNS == 0 else ()

    return get_events
