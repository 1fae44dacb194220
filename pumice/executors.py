"""Who works: processes of this machine, or a Dask cluster. Both are executors of the standard library, and who asks the
same thing often takes either: sweeps, storms, conformance, searches for what lets a job start.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Final, TypeVar

from pumice.extras import demand
from pumice.processes import Processes, nothing

K = TypeVar("K", bound=Hashable)
Executors = Callable[[], AbstractContextManager[Executor]]
KILLED: Final = "KilledWorker"
"""What Dask says of something over which several workers have died."""


@contextmanager
def local(workers: int, begin: Callable[[], None] = nothing) -> Generator[Executor]:
    """Fresh processes, so that what a worker imports is what a newcomer imports. Who leaves before the end, for
    whatever reason, does not wait for what is under way.
    """
    pool = Processes(workers, begin)
    try:
        yield pool
    finally:
        pool.kill()


@contextmanager
def dask(address: str) -> Generator[Executor]:
    """The workers of a Dask cluster, which must see the same files and have Pumice. It replaces one that dies."""
    with demand("distributed", "dask", "Dask clusters").Client(address) as client:
        yield client.get_executor(pure=False)


def executors(workers: int, address: str | None, begin: Callable[[], None] = nothing) -> Executors:
    """What runs tasks where `--workers` and `--dask` say."""
    return partial(local, workers, begin) if address is None else partial(dask, address)


def as_ended(
    work: Callable[..., Any], tasks: Mapping[K, tuple[Any, ...]], executor: Executor
) -> Generator[tuple[K, Future[Any]]]:
    """Key and future of each task as it ends; what has not begun when somebody leaves is not begun any more."""
    running = {executor.submit(work, *task): key for key, task in tasks.items()}
    try:
        for future in as_completed(running):
            yield running.pop(future), future  # forgotten here: there may be a hundred thousand
    finally:
        for future in running:
            future.cancel()


def died(error: BaseException | None) -> bool:
    """Whether that is no answer, but the end of who was to give it."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ == KILLED
