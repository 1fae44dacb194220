"""Metrics of the jobs that wait, by queue and class: counted by the adviser while somebody reads metrics, so seldom
that it costs little.
"""

from __future__ import annotations

from typing import Any, Final

import anyio
import msgspec
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from pumice.actors.gateway.advice import AdviceDesk, AdviserQuestion
from pumice.actors.gateway.problems import ApiError

LEAST_S: Final = 15.0
"""Between two counts."""
REST: Final = 20
"""And so many times as long as the last one took."""
OK: Final = 200


class WaitingGauges:
    """`text` is what was counted last, and has it counted again."""

    def __init__(self, desk: AdviceDesk) -> None:
        self._desk = desk
        self._text = b""
        self._read = anyio.Event()

    def text(self) -> bytes:
        """In Prometheus' format; nothing before the first count is over."""
        self._read.set()
        return self._text

    async def keep(self) -> None:
        """Count whenever somebody has read, until cancelled."""
        while True:
            await self._read.wait()
            self._read = anyio.Event()
            began = anyio.current_time()
            try:
                answer = await self._desk.look(AdviserQuestion("waitclasses"))
            except ApiError:
                continue
            if answer.code == OK:
                self._text = exposed(msgspec.json.decode(answer.body))
            await anyio.sleep(max(LEAST_S, REST * (anyio.current_time() - began)))


def exposed(counted: dict[str, Any]) -> bytes:
    """The answer about classes as metrics."""
    registry = CollectorRegistry()
    jobs = Gauge("pumice_waiting_jobs", "Jobs that wait, by queue and class", ["queue", "class"], registry=registry)
    cycle = Gauge("pumice_waiting_counted_cycle", "The cycle after which waiting jobs were counted", registry=registry)
    cycle.set(counted["cycle"])
    for kind, queues in counted["classes"].items():
        for queue, number in queues.items():
            jobs.labels(queue, kind).set(number)
    return generate_latest(registry)
