"""What queues held over the recent past, as sparklines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio

from pumice.cli.tables.frame import sparkline
from pumice.config.errors import PumiceError
from pumice.core.messages.queue_gauges import WHOLE
from pumice.questions.adviser.pictures import measures_of
from pumice.questions.explain.server import Server, ask

if TYPE_CHECKING:
    from pathlib import Path

BARS: Final = 12


def held_lately(db: Path | None, server: Server | None, until: float) -> dict[str, str]:
    """By queue: the resource of which it held the largest part, against the most it held, up to a moment (seconds since
    the epoch). Nothing where no journal is whole, or the server has none.
    """
    try:
        if server is not None:
            return drawn(ask(server, "measures"), until)
        return {} if db is None else drawn(anyio.run(measures_of, db), until)
    except PumiceError:
        return {}


def drawn(measures: dict[str, Any], until: float) -> dict[str, str]:
    """What `held_lately` says, of measures that are at hand."""
    count = sum(1 for start in measures["starts_s"] if measures["began"] + start <= until)
    series = {(one["what"], one["queue"], one["resource"]): one["values"][:count] for one in measures["series"]}
    found: dict[str, tuple[float, str]] = {}
    for (what, queue, resource), values in series.items():
        there = max(series.get(("capacity", "", resource), ()), default=0.0)
        if what != "held" or not queue or resource == WHOLE or not there:
            continue
        part = max(values, default=0.0) / there
        if part > found.get(queue, (0.0, ""))[0]:
            found[queue] = (part, f"{sparkline(values[-BARS:], max(values))} {resource}")
    return {queue: line for queue, (_, line) in found.items()}
