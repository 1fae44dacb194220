# SPDX-License-Identifier: Apache-2.0
"""Shares of devices that nodes offer and pods request in a storm: as many as the scheduler's configuration
hands out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Final

from msgspec.structs import replace

from pumice.core.configuration import parse_scheduler_config
from pumice.core.devices.settings import CONFIG_MAP, HAMI
from pumice.core.objects.metadata import Object
from pumice.core.plugins.deviceshare import BY_MEMORY, BY_NUMBER, MINDCLUSTER
from pumice.proof.storm.script.events import Event

SHARES: Final = ((4096, 25), (8000, 50), (12000, 30), (16384, 100), (2048, 60))
"""MiB and per cent of a card that the pods of a job ask for."""
PLUGIN: Final = "deviceshare"
KINDS: Final = {BY_MEMORY: "gpu-memory", BY_NUMBER: "gpu-number", HAMI: "npu", MINDCLUSTER: "npu-cores"}
"""By the argument of deviceshare that switches the kind on."""
VIRTUAL: Final = "share"
_HAVE: Final[dict[str, tuple[Object, ...]]] = {
    "gpu-memory": tuple({"gpus-shared": count} for count in (1, 2, 4)),
    "gpu-number": tuple({"gpus-shared": count} for count in (1, 2, 4)),
    "npu": tuple({"npus": count} for count in (1, 2, 4)),
    "npu-cores": tuple({"chips": count} for count in (1, 2, 4)),
    "slices": tuple({"cards": count, "mig": 1} for count in (1, 2, 4)),
}
_ASK: Final[dict[str, tuple[Object, ...]]] = {
    "gpu-memory": tuple({"gpu-memory": mib} for mib in (2048, 4096, 8000, 12000, 16384)),
    "gpu-number": ({"gpu-number": 1}, {"gpu-number": 1}, {"gpu-number": 2}),
    "npu": tuple({"npu": mib} for mib in (3072, 6144, 12288, 21527)),
    "npu-cores": tuple({"npu-cores": count} for count in (1, 2, 4, 8)),
    "slices": tuple({"share": mib} for mib in (2048, 4096, 8000, 16384)),
}


def kind_of(config: str) -> str:
    """Return the kind of share that a scheduler configuration hands out; cards and cells by default."""
    option = parse_scheduler_config(config, source="the profile", lenient=True).plugin(PLUGIN) if config else None
    arguments = {} if option is None else option.arguments
    switched = (kind for switch, kind in KINDS.items() if switch.of(arguments))
    return next(switched, "slices" if CONFIG_MAP.name in arguments else VIRTUAL)


def with_shares(seed: int, events: Iterable[Event], share: float, config: str = "") -> Iterator[Event]:
    """Yield events of a storm, where most nodes have cards or cells and a share of the jobs requests parts of them."""
    random, kind = Random(f"shares {seed}"), kind_of(config)
    if kind == "slices":
        yield Event("geometries")
    for event in events:
        more: Object = {}
        if event.what == "node" and random.random() < 0.8:
            more = random.choice(_HAVE[kind]) if kind != VIRTUAL else _node(random)
        elif event.what in ("job", "vcjob") and random.random() < share:
            more = random.choice(_ASK[kind]) if kind != VIRTUAL else _job(random)
        yield replace(event, details=event.details | more) if more else event


def _node(random: Random) -> Object:
    return random.choice(({"cards": random.choice((1, 2, 4))}, {"cells": 2}, {"cards": 2, "cells": 2}))


def _job(random: Random) -> Object:
    memory, cores = random.choice(SHARES)
    return random.choice(({"share": memory, "cores": cores}, {"cpu": str(random.choice((1, 2, 3))), "whole": 1}))
