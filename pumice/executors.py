# SPDX-License-Identifier: Apache-2.0
"""Executors of work: processes of this machine, or a Dask cluster. Both are executors of the standard library, and
callers that repeat a task often accept either: sweeps, storms, conformance, searches for the smallest change that lets
a job start.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Generator, Hashable, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from multiprocessing.resource_tracker import ensure_running
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, ParamSpec, TypeVar
from weakref import finalize

import anyio

from pumice.errors import demand

# --- Work in a thread of its own


def in_thread(work: Callable[..., T], *arguments: object) -> T:
    """Return the result of `work(*arguments)`, called in a thread of its own: no event loop runs there, even if the
    caller has one.
    """
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work, *arguments).result()


def waited(work: Callable[..., Awaitable[T]], *arguments: object) -> T:
    """Return the result of an asynchronous function, run in a thread of its own."""

    def run() -> T:
        return anyio.run(work, *arguments)

    return in_thread(run)


# --- Cores


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# --- Processes
# They are given one thing at a time, so that one that dies takes only that with it.

P = ParamSpec("P")
T = TypeVar("T")
Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
ENDING: Final = (signal.SIGINT, signal.SIGTERM)
"""Signals that end the command. Workers never see them: they are for the process that started them to deal with."""


_STARTING: Final = Lock()


@contextmanager
def apart_from_main() -> Generator[None]:
    """Let processes that start in this block not import the script of their caller. It would run again in each of them,
    and a script without a guard would start the same work there.
    """
    main = vars(sys.modules["__main__"])
    with _STARTING:  # one at a time, or a second thread would keep the names as the first left them
        kept: dict[str, Any] = {name: main[name] for name in ("__spec__", "__file__") if name in main}
        main["__spec__"] = None
        main.pop("__file__", None)
        try:
            yield
        finally:
            main.update(kept)


class WorkerDiedError(BrokenExecutor):
    """The process of the task died, killed or out of memory."""


def nothing() -> None:
    """Do nothing before the first task."""


@dataclass(frozen=True, slots=True)
class _Worker:
    process: SpawnProcess
    line: Connection[Call, tuple[bool, Any]]

    def end(self) -> None:
        """End the process immediately, even in the middle of a task."""
        self.process.kill()
        self.process.join()
        self.line.close()


class Processes(Executor):
    """At most so many fresh processes, each started when a task comes and served by a thread of this process.

    `begin` is called first in each of them. What raises there is raised by the result; WorkerDiedError where the
    process died, and another one goes on with the next thing.
    """

    def __init__(self, workers: int, begin: Callable[[], None] = nothing) -> None:
        self._begin = begin
        self._left: SimpleQueue[tuple[Future[Any], Call] | None] = SimpleQueue()
        self._lock = Lock()
        self._alive = set[SpawnProcess]()
        self._ended = False
        ensure_running()  # or starting a process does so first, and lets the signals through
        self._threads = [Thread(target=self._serve, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit a task to the next free process."""
        future: Future[T] = Future()
        self._left.put((future, (fn, args, kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Finish all submitted tasks first, unless they are cancelled; accept no more."""
        if cancel_futures:
            self._forget()
        for _ in self._threads:
            self._left.put(None)
        for thread in self._threads if wait else ():
            thread.join()

    def kill(self) -> None:
        """End immediately, whatever is running."""
        with self._lock:
            self._ended = True
            for process in self._alive:
                process.kill()
        self.shutdown(cancel_futures=True)

    def _forget(self) -> None:
        while not self._left.empty():
            item = self._left.get()
            if item is not None:
                item[0].cancel()

    def _serve(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # processes that this thread starts inherit it
        worker: _Worker | None = None
        while (item := self._left.get()) is not None:
            future, call = item
            if not future.set_running_or_notify_cancel():
                continue
            worker = worker or self._start()
            if worker is None or not _done(worker, call, future):
                self._end(worker)
                worker = None
        self._end(worker)

    def _start(self) -> _Worker | None:
        with self._lock:
            if self._ended:
                return None
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(self._begin, theirs), daemon=True)
            with apart_from_main():
                process.start()
            self._alive.add(process)
        theirs.close()
        return _Worker(process, ours)

    def _end(self, worker: _Worker | None) -> None:
        if worker is not None:
            worker.end()
            with self._lock:
                self._alive.discard(worker.process)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _done(worker: _Worker, call: Call, future: Future[Any]) -> bool:
    """Run a call on the worker, set its result in the future, and return whether the worker still lives."""
    try:
        worker.line.send(call)
        good, found = worker.line.recv()
    except (EOFError, OSError):
        future.set_exception(WorkerDiedError("the process died (out of memory?)"))
        return False
    except Exception as error:  # noqa: BLE001 (the caller learns of what cannot be sent)
        future.set_exception(error)
        return False
    (future.set_result if good else future.set_exception)(found)
    return True


def _work(begin: Callable[[], None], line: Connection[tuple[bool, Any], Call]) -> None:
    """Answer calls until the other end closes. A worker in the middle of a long call ends with its parent, too."""
    Thread(target=_end_with_parent, daemon=True).start()
    gc.freeze()
    begin()
    with suppress(EOFError, ConnectionError):
        while True:
            work, arguments, named = line.recv()
            try:
                found = True, work(*arguments, **named)
            except Exception as error:  # noqa: BLE001 (whatever it is, it is raised in the caller)
                found = False, error
            line.send(found)


K = TypeVar("K", bound=Hashable)
Executors = Callable[[], AbstractContextManager[Executor]]
KILLED: Final = "KilledWorker"
"""Name of Dask's error for a task over which several workers have died."""


@contextmanager
def local(workers: int, begin: Callable[[], None] = nothing) -> Generator[Executor]:
    """Yield an executor of fresh processes, so that a worker imports what any new process imports. A caller that leaves
    early, for whatever reason, does not wait for running tasks.
    """
    pool = Processes(workers, begin)
    try:
        yield pool
    finally:
        pool.kill()


@contextmanager
def in_threads(workers: int) -> Generator[Executor]:
    """Yield threads, for tasks that wait for processes of their own. A caller that leaves early cancels the rest."""
    threads = ThreadPoolExecutor(workers)
    try:
        yield threads
    finally:
        threads.shutdown(cancel_futures=True)


@contextmanager
def dask(address: str) -> Generator[Executor]:
    """Yield the workers of a Dask cluster, which must see the same files and have Pumice. It replaces one that dies."""
    with demand("distributed", "dask", "Dask clusters").Client(address) as client:
        yield client.get_executor(pure=False)


def lending(given: Executors | AbstractContextManager[Executor]) -> Executors:
    """Return executors of what a caller gives: a function that makes one, the block of one that is still to be opened
    (`dask(address)`), or an executor of the caller's own, which stays open.
    """
    if isinstance(given, Executor):
        mine: Executor = given
        return lambda: nullcontext(mine)
    if isinstance(given, AbstractContextManager):
        return lambda: given  # pyright: ignore[reportUnknownLambdaType]
    return given


class StandingExecutors:
    """Executors that are opened once and lent again and again: starting two processes takes longer than to run a small
    task in them. `close` ends them; so does the end of their owner.
    """

    def __init__(self, made: Executors) -> None:
        self._made, self._open = made, ExitStack()
        self._executor: Executor | None = None
        self._end = finalize(self, self._open.close)

    @contextmanager
    def __call__(self) -> Generator[Executor]:
        """Lend the executor, which is opened at first. A borrower that leaves by an exception does not wait for running
        tasks: they end, and the next loan opens another one.
        """
        if self._executor is None:
            self._executor = self._open.enter_context(self._made())
        try:
            yield self._executor
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End it, whatever runs. The next loan opens another one."""
        self._open.close()
        self._executor = None


def executors(workers: int, address: str | None, begin: Callable[[], None] = nothing) -> Executors:
    """Return the executors that `--workers` and `--dask` ask for."""
    return partial(local, workers, begin) if address is None else partial(dask, address)


def as_ended(
    work: Callable[..., Any], tasks: Mapping[K, tuple[Any, ...]], executor: Executor
) -> Generator[tuple[K, Future[Any]]]:
    """Yield key and future of each task as it ends; tasks that have not begun when the caller leaves are cancelled."""
    running = {executor.submit(work, *task): key for key, task in tasks.items()}
    try:
        for future in as_completed(running):
            yield running.pop(future), future  # forgotten here: there may be a hundred thousand
    finally:
        for future in running:
            future.cancel()


def died(error: BaseException | None) -> bool:
    """Return whether the error means that the worker died, not that the task failed."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ == KILLED
