"""Another process, for the future that is not lived through here."""

from __future__ import annotations

import gc
from collections.abc import Generator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from pumice.collecting import RARELY
from pumice.cores import cores
from pumice.plugins.loader import install_plugins

LARGE: Final = 3000
"""Objects of a cluster for which it pays."""


@contextmanager
def another_process(objects: int, plugins_dir: Path | None) -> Generator[Executor | None]:
    """One, with the same users' plugins; None where it would not pay, or there is only one core."""
    if objects < LARGE or cores() == 1:
        yield None
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(1, context, prepare, (plugins_dir,)) as executor:
        yield executor


def prepare(plugins_dir: Path | None) -> None:
    """What a process that lives through futures begins with."""
    install_plugins(plugins_dir)
    gc.set_threshold(*RARELY)
