"""Who works: processes of this machine, or a Dask cluster. Both are executors of the standard library."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, Final, TypeVar

from pumice.extras import demand

T = TypeVar("T")

AGAIN: Final = 3
"""So often a pool is made anew when a worker of it dies; then something kills them."""


@contextmanager
def local(workers: int) -> Generator[Executor]:
    """Fresh processes, so that what a worker imports is what a newcomer imports."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield pool


@contextmanager
def dask(address: str) -> Generator[Executor]:
    """The workers of a Dask cluster, which must see the same files and have Pumice. It replaces one that dies."""
    with demand("distributed", "dask", "Dask clusters").Client(address) as client:
        yield client.get_executor(pure=False)


def in_order_of_ending(work: Any, tasks: dict[str, tuple[Any, ...]], executor: Executor) -> Generator[tuple[str, Any]]:
    """Key and result of each task as it ends. Raises what a task raised, and BrokenProcessPool when a worker died."""
    running: dict[Future[Any], str] = {executor.submit(work, *task): key for key, task in tasks.items()}
    try:
        for future in as_completed(running):
            yield running[future], future.result()
    finally:
        for future in running:
            future.cancel()


__all__ = ["AGAIN", "BrokenProcessPool", "dask", "in_order_of_ending", "local"]
