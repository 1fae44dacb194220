"""Moments of a run that is over, as forks: what was known then and no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio

from pumice.cluster.kernel.fork import Fork
from pumice.config.errors import ConfigError
from pumice.questions.history.rewind import newest_cycle
from pumice.questions.whatif.sources import journaled


def moments_of(file: Path, number: int) -> Iterator[Fork]:
    """So many cycles of the journal, evenly spread; those that it holds no longer are left out."""
    newest = anyio.run(newest_cycle, file)
    for cycle in sorted({max(round(newest * place / (number + 1)), 1) for place in range(1, number + 1)}):
        try:
            yield anyio.run(journaled, file, cycle)
        except ConfigError:
            continue
