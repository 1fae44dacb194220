# SPDX-License-Identifier: Apache-2.0
"""Roles that carry out decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.actors.effects.bind_worker import BindWorker
from pumice.actors.effects.evict_worker import EvictWorker
from pumice.actors.effects.pre_bind_worker import PreBindWorker
from pumice.actors.effects.status_writer import WAIT_S, StatusWriter
from pumice.actors.system import ports
from pumice.actors.system.settings import elsewhere, numbered, scheduling
from pumice.actors.system.wiring import Role

if TYPE_CHECKING:
    from pumice.actors.system.wiring import Wiring


def _bind_worker(wiring: Wiring, name: str) -> BindWorker:
    return BindWorker(*wiring.own(name), **wiring.ports_there(name), timeout_s=wiring.settings.answer_timeout_s)


def _pre_bind_worker(wiring: Wiring, name: str) -> PreBindWorker:
    timeout_s = wiring.settings.answer_timeout_s
    return PreBindWorker(
        *wiring.own(name), **wiring.ports_there(name), waiting=wiring.waiting_binds, timeout_s=timeout_s
    )


def _evict_worker(wiring: Wiring, name: str) -> EvictWorker:
    return EvictWorker(*wiring.own(name), **wiring.ports_there(name), timeout_s=wiring.settings.answer_timeout_s)


def _status_writer(wiring: Wiring, name: str) -> StatusWriter:
    settings = wiring.settings
    wait_s = settings.answer_timeout_s if elsewhere(settings) else WAIT_S  # there, one waits for a place in the line
    return StatusWriter(*wiring.own(name), **wiring.ports_there(name), wait_s=wait_s)


BIND_WORKER: Final = Role(
    name="bind-worker",
    port=ports.BindPort,
    sends={
        "api": "api-server",
        "cluster": "cluster-api",
        "cache": "cache",
        "metrics": "metrics",
        "recorder": "recorder",
        "status": "status-writer",
    },
    build=_bind_worker,
    wanted=scheduling,
    instances=lambda settings, config, actions: numbered(settings.bind_workers, config.pumice.bind_workers),
    # As many as there are by default (`config.pumice_arguments`).
    crashes=tuple(f"bind-worker:{number}" for number in range(4)),
    box="bind workers × N",
)

EVICT_WORKER: Final = Role(
    name="evict-worker",
    port=ports.EvictPort,
    sends={"api": "api-server", "cluster": "cluster-api", "cache": "cache", "recorder": "recorder"},
    build=_evict_worker,
    wanted=scheduling,
    instances=lambda settings, config, actions: numbered(settings.evict_workers, config.pumice.evict_workers),
    crashes=("evict-worker:0", "evict-worker:1"),
    box="evict workers × N",
)

STATUS_WRITER: Final = Role(
    name="status-writer",
    port=ports.StatusPort,
    sends={"api": "api-server", "cluster": "cluster-api", "cache": "cache", "recorder": "recorder"},
    build=_status_writer,
    wanted=scheduling,
    crashes=("status-writer",),
    box="status writer",
)

# One actor and no pool: all binds that wait share one watch, and devices are looked up in one table (`holders`).
PRE_BIND_WORKER: Final = Role(
    name="pre-bind-worker",
    port=ports.BindPort,
    sends={
        "api": "api-server",
        "cluster": "cluster-api",
        "cache": "cache",
        "metrics": "metrics",
        "recorder": "recorder",
        "status": "status-writer",
    },
    build=_pre_bind_worker,
    wanted=scheduling,
    crashes=("pre-bind-worker",),
    box="bind workers × N",
)
