# SPDX-License-Identifier: Apache-2.0
"""Roles that keep records: the journal's writers, and the metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.actors.journal.checkpointer import Checkpointer
from pumice.actors.journal.recorder import Recorder
from pumice.actors.metrics.metrics import Metrics
from pumice.actors.runtime.clock import VirtualClock
from pumice.actors.system import ports
from pumice.actors.system.wiring import Role, plainly

if TYPE_CHECKING:
    from pumice.actors.system.wiring import Wiring


def _recorder(wiring: Wiring, name: str) -> Recorder:
    look_s = wiring.settings.journal_look_s
    return Recorder(*wiring.own(name), wiring.journal, wiring.recovered.sequence, wiring.written, look_s)


def _checkpointer(wiring: Wiring, name: str) -> Checkpointer:
    every = wiring.settings.records_between(wiring.source.loaded.config.pumice)
    in_thread = not isinstance(wiring.context.clock, VirtualClock)  # which would take a thread's work for idleness
    whose, recorder = wiring.own(name), wiring.ports(name)["recorder"]
    return Checkpointer(*whose, recorder, wiring.journal, wiring.written, every, wiring.settings.retention, in_thread)


# Vital: without a journal nothing may be acknowledged, so its crash ends the process.
RECORDER: Final = Role(name="recorder", port=ports.RecorderPort, build=_recorder, vital=True, box="recorder")

CHECKPOINTER: Final = Role(
    name="checkpointer",
    port=ports.PokePort,
    sends={"recorder": "recorder"},
    build=_checkpointer,
    crashes=("checkpointer",),
    box="checkpointer",
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
