"""Those that keep what happened: the journal's writers, and the metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from actors.journal.checkpointer import Checkpointer
from actors.journal.recorder import Recorder
from actors.metrics.metrics import Metrics
from actors.runtime.clock import VirtualClock
from actors.system import ports
from actors.system.wiring import Role, plainly

if TYPE_CHECKING:
    from actors.system.wiring import Wiring


def _recorder(wiring: Wiring, name: str) -> Recorder:
    return Recorder(*wiring.own(name), wiring.journal, wiring.recovered.sequence, wiring.written)


def _checkpointer(wiring: Wiring, name: str) -> Checkpointer:
    every = wiring.settings.records_between(wiring.source.loaded.config.pumice)
    in_thread = not isinstance(wiring.context.clock, VirtualClock)  # which would take a thread's work for idleness
    return Checkpointer(*wiring.own(name), wiring.journal, wiring.written, every, wiring.settings.retention, in_thread)


RECORDER: Final = Role(name="recorder", port=ports.RecorderPort, build=_recorder, vital=True, box="recorder")

CHECKPOINTER: Final = Role(
    name="checkpointer", port=ports.PokePort, build=_checkpointer, crashes=("checkpointer",), box="checkpointer"
)

METRICS: Final = Role(
    name="metrics",
    port=ports.MetricsPort,
    sends={"supervisor": "supervisor"},
    build=plainly(Metrics),
    crashes=("metrics",),
    box="metrics",
)

SUPERVISOR: Final = Role(
    name="supervisor", port=ports.SupervisorPort, sends={"note": "recorder"}, build=None, box="supervisor"
)
