"""Processes that are given one number at a time, so that one that dies takes only that number's result with it."""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.resource_tracker import ensure_running
from typing import Final, Generic, TypeVar

from pumice.storm.simulation import GC_THRESHOLDS

T = TypeVar("T")
ENDING: Final = (signal.SIGINT, signal.SIGTERM)
"""Signals that end the command. Workers never see them: they are for the process that started them to deal with."""


@dataclass(slots=True)
class Worker(Generic[T]):
    """One process, and what it is busy with."""

    process: SpawnProcess
    line: Connection[int, T | Exception]
    number: int

    def give(self, number: int) -> None:
        """What it is to do next. Whether it is alive shows when it is listened to."""
        self.number = number
        with suppress(OSError):
            self.line.send(number)

    def result(self) -> T | None:
        """None when it died. Raises what the work raised."""
        try:
            found = self.line.recv()
        except (EOFError, OSError):
            return None
        if isinstance(found, Exception):
            raise found
        return found

    def end(self) -> None:
        """At once, whatever it is busy with."""
        self.process.kill()
        self.process.join()
        self.line.close()


def in_processes(work: Callable[[int], T], numbers: Iterable[int], workers: int) -> Generator[tuple[int, T | None]]:
    """Results as they are done; None for a number whose worker died: another worker goes on with the next one.

    Who leaves before the end, for whatever reason, does not wait for work under way: the workers are killed.
    """
    left = iter(numbers)
    busy: dict[Connection[int, T | Exception], Worker[T]] = {}
    try:
        for number in islice(left, workers):
            _start(work, number, busy)
        while busy:
            for line in wait(list(busy)):
                worker = busy[line]  # type: ignore[index]  # wait() gives back what it was given
                number, result = worker.number, worker.result()
                _go_on(work, worker, next(left, None), busy, died=result is None)
                yield number, result
    finally:
        for worker in busy.values():
            worker.end()


def _go_on(
    work: Callable[[int], T],
    worker: Worker[T],
    number: int | None,
    busy: dict[Connection[int, T | Exception], Worker[T]],
    *,
    died: bool,
) -> None:
    if number is not None and not died:
        worker.give(number)
        return
    del busy[worker.line]
    worker.end()
    if number is not None:
        _start(work, number, busy)


def _start(work: Callable[[int], T], number: int, busy: dict[Connection[int, T | Exception], Worker[T]]) -> None:
    """The new process inherits what is blocked here; and nothing ends this one before it knows of the other."""
    context = multiprocessing.get_context("spawn")
    ensure_running()  # or starting the process does so first, and lets the signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(work, theirs), daemon=True)
        process.start()
        theirs.close()
        worker = busy[ours] = Worker(process, ours, number)
        worker.give(number)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(work: Callable[[int], T], line: Connection[T | Exception, int]) -> None:
    """Until nobody is at the other end."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)  # between storms too, see `pumice.storm.stress.rare_collections`
    with suppress(EOFError, ConnectionError):
        while True:
            number = line.recv()
            try:
                result: T | Exception = work(number)
            except Exception as error:  # noqa: BLE001 (whatever it is, it is raised where somebody sees it)
                result = error
            line.send(result)
