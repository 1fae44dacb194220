# SPDX-License-Identifier: Apache-2.0
"""The order in which trio runs ready tasks, from a seed: the one module that touches trio's private names.

trio shuffles ready tasks on purpose. With its random source seeded and its switch on (what Hypothesis does), a program
that waits for nothing outside runs the same way every time, in every process. Nor need it ask at every turn of its loop
what has come from outside, which costs as much as the turn, or at every step whether it is observed or not, and it is
not.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import RLock
from typing import Any, Final, cast

import trio._core._run as trio_run

# With it trio sorts the ready tasks by number and shuffles them, and does not only toss a coin about their order.
SWITCH: Final = "_ALLOW_DETERMINISTIC_SCHEDULING"
SOURCE: Final = "_r"
OUTSIDE: Final = "TheIOManager"
INSTRUMENTS: Final = "Instruments"
RUNNER: Final = "runner"
READY: Final = "runq"
_ONE_AT_A_TIME: Final = RLock()
TURNS: Final = 32
"""Number of turns of the loop between two looks outside: Ctrl-C comes from there, and the end of the loop."""


def source() -> random.Random:
    """Return trio's random source. AttributeError when trio keeps it elsewhere."""
    return cast("random.Random", getattr(trio_run, SOURCE))


@contextmanager
def deterministic(seed: int) -> Generator[None]:
    """Make a loop's order a function of the seed within the block; afterwards everything is as it was.

    One block at a time, for all threads: trio has one random source for them all.
    """
    outside = getattr(trio_run, OUTSIDE)
    with (
        _ONE_AT_A_TIME,
        _replaced(SWITCH, True),
        _replaced(OUTSIDE, _kind_of(outside, get_events=_seldom(outside.get_events))),
        # The method of an empty set: `in` stays in C, and no instrument is ever there.
        _replaced(INSTRUMENTS, _kind_of(getattr(trio_run, INSTRUMENTS), __contains__=frozenset[str]().__contains__)),
    ):
        state = source().getstate()
        source().seed(seed)
        try:
            yield
        finally:
            source().setstate(state)


@contextmanager
def held(strike: Callable[[str], int]) -> Generator[None]:
    """Hold ready tasks in a running loop, within the block, for as many turns as `strike` returns for each name. Only
    named tasks are held: those of trio and of helpers have their functions' dotted names.
    """
    runner: Any = getattr(trio_run.GLOBAL_RUN_CONTEXT, RUNNER)
    before = getattr(runner, READY)
    setattr(runner, READY, _Ready(before, strike))
    try:
        yield
    finally:
        left = getattr(runner, READY)
        setattr(runner, READY, before)
        # Those that are held too: nothing else would ever run them.
        before.extend(left.all_objects())


class _Ready(deque[Any]):
    """The ready tasks. A loop lists them, where some are skipped, and takes them out."""

    def __init__(self, tasks: Iterable[Any], strike: Callable[[str], int]) -> None:
        super().__init__(tasks)
        self._strike = strike
        self._turns: dict[Any, int] = {}

    def all_objects(self) -> list[Any]:
        """Return those that are held too."""
        return list(super().__iter__())

    def __iter__(self) -> Iterator[Any]:
        return iter([task for task in super().__iter__() if not self._waits(task)])

    def _waits(self, task: Any) -> bool:
        left = self._turns.pop(task, None)
        if left is None:
            left = 0 if "." in task.name else self._strike(task.name)
        if left:
            self._turns[task] = left - 1
        return left > 0

    def clear(self) -> None:
        """Take out those that were listed."""
        kept = [task for task in super().__iter__() if task in self._turns]
        super().clear()
        for task in kept:
            self.append(task)


@contextmanager
def _replaced(name: str, value: object) -> Generator[None]:
    before = getattr(trio_run, name)
    setattr(trio_run, name, value)
    try:
        yield
    finally:
        setattr(trio_run, name, before)


def _kind_of(parent: type, **methods: Any) -> type:
    """Return a class whose instances belong only to loops that begin in the block."""
    return type(parent.__name__, (parent,), methods)


def _seldom(look: Callable[[Any, float], Any]) -> Callable[[Any, float], Any]:
    """Looks outside where trio would wait for it, and at one in TURNS of the turns when it would not."""
    turns = count(1)

    def get_events(io: object, timeout: float) -> Any:
        return look(io, timeout) if timeout > 0 or next(turns) % TURNS == 0 else ()

    return get_events
