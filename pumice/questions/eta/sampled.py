# SPDX-License-Identifier: Apache-2.0
"""Sampled futures of one cluster, lived through by this process and by others, each with the cluster read once.

Every future is a function of its number alone, so it does not matter which process lives through it, or when.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pumice.executors import cores, local
from pumice.questions.eta.futures import PodsOfFork, starts_in
from pumice.questions.whatif.ask import prepare

if TYPE_CHECKING:
    from pumice.cluster.kernel.fork import Fork
    from pumice.questions.eta.runs import EndedRun

Starts = dict[str, float | None]
MIDDLE, SAID = -1, -2
"""Numbers of the future in which every pod runs as long as half of its like do, and as long as it says itself."""
PAYS: Final = 10_000
"""Objects, counted once for each future, from which on other processes pay: the start of one takes about a second."""


@dataclass(frozen=True, slots=True)
class SampledFutures:
    """`seed`: of the draws. `asked`: a future ends once these have started (None: all)."""

    pods: PodsOfFork
    horizon_s: float
    seed: int = 0
    asked: frozenset[str] | None = None

    def starts(self, number: int, advance: Callable[[float], None] = lambda seconds: None) -> Starts:
        """Live through the future of that number, and return when jobs start in it."""
        return starts_in(self._fork(number), self.horizon_s, self.asked, advance)

    def _fork(self, number: int) -> Fork:
        match number:
            case _ if number == MIDDLE:
                return self.pods.middle()
            case _ if number == SAID:
                return self.pods.fork
            case _:
                return self.pods.future(self.seed, number)

    def all_starts(
        self,
        numbers: Sequence[int],
        advance: Callable[[float], None],
        end: Callable[[], None],
        executor: Executor | None = None,
    ) -> list[Starts]:
        """Return the starts of each future, in order. `advance` hears how far the one in hand is, `end` of each that is
        over. `executor`: other processes that are prepared for these futures; they begin with the last.
        """
        if executor is None:
            return [self._lived_here(number, advance, end) for number in numbers]
        elsewhere = {number: executor.submit(_starts_there, number) for number in reversed(numbers)}
        here = {
            number: self._lived_here(number, advance, end)
            for number in numbers
            if elsewhere[number].cancel()  # not begun yet: the others have enough to do
        }
        found = list[Starts]()
        for number in numbers:
            if number in here:
                found.append(here[number])
            else:
                found.append(elsewhere[number].result())
                end()
        return found

    def _lived_here(self, number: int, advance: Callable[[float], None], end: Callable[[], None]) -> Starts:
        found = self.starts(number, advance)
        end()
        return found


@contextmanager
def other_processes(
    futures: Callable[[], SampledFutures], objects: int, count: int, plugins_dir: Path | None = None
) -> Generator[Executor | None]:
    """Give the other processes of this machine, prepared for `count` futures of so many objects; None where they would
    not pay.
    """
    workers = min(cores(), count) - 1
    if workers < 1 or objects * count < PAYS:
        yield None
        return
    with local(workers, partial(_prepare, plugins_dir, futures)) as executor:
        yield executor


def sampled(
    fork: Fork, ended: Sequence[EndedRun], horizon_s: float, seed: int, asked: frozenset[str] | None
) -> SampledFutures:
    """Return the futures of a fork. `ended`: known runs."""
    return SampledFutures(PodsOfFork(fork, ended), horizon_s, seed, asked)


_HERE: Final = list[SampledFutures]()
"""The futures that this process was prepared for."""


def _prepare(plugins_dir: Path | None, futures: Callable[[], SampledFutures]) -> None:
    prepare(plugins_dir)
    _HERE[:] = [futures()]


def _starts_there(number: int) -> Starts:
    return _HERE[0].starts(number)
