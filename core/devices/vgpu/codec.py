# SPDX-License-Identifier: Apache-2.0
"""The annotations of virtual GPUs: cards that device plugins register on nodes, and parts assigned to pods.

Source: Volcano `api/devices/nvidia/vgpu/utils.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from pumice.core.go_numbers import read_int
from pumice.core.objects.metadata import parse_bool

DOMAIN: Final = "volcano.sh"
REGISTER: Final = "volcano.sh/node-vgpu-register"
HANDSHAKE: Final = "volcano.sh/node-vgpu-handshake"
IDS: Final = "volcano.sh/vgpu-ids-new"
TO_ALLOCATE: Final = "volcano.sh/devices-to-allocate"
NODE: Final = "volcano.sh/vgpu-node"
TIME: Final = "volcano.sh/vgpu-time"
BIND_TIME: Final = "volcano.sh/bind-time"
BIND_PHASE: Final = "volcano.sh/bind-phase"
ASSIGNED: Final = (NODE, IDS, TO_ALLOCATE, TIME, BIND_TIME, BIND_PHASE)
HAMI, MIG = "hami-core", "mig"
_FIELDS: Final = 6


class Registered(NamedTuple):
    """A card as its device plugin registered it: how many may share it, its MiB."""

    uuid: str
    split: int
    memory: int
    type: str
    healthy: bool
    mode: str


class Assigned(NamedTuple):
    """A container's part of a card; a MIG slice stands behind the card's uuid."""

    uuid: str
    type: str
    memory: int
    cores: int


@lru_cache(maxsize=16384)
def registered(text: str) -> tuple[Registered, ...]:
    """Return the cards that a node registered; none when the entry of one of them is too short."""
    cards: list[Registered] = []
    # Volcano takes a text without a colon for no registration, and one short entry makes it drop the node.
    for items in fields_in(text) if ":" in text else ():
        if len(items) < _FIELDS:
            return ()
        # Volcano reads 64 bits: no card has 2**31 MiB, and sums of such would not fit a column
        split, memory = _int32(items[1]), _int32(items[2])
        mode = MIG if items[5] == MIG else HAMI
        cards.append(Registered(items[0], split, memory, items[3], bool(parse_bool(items[4])), mode))
    return tuple(cards)


@lru_cache(maxsize=16384)
def assigned(text: str) -> tuple[tuple[Assigned, ...], ...]:
    """Return what each container has."""
    return tuple(_of_container(part) for part in text.split(";")) if text else ()


def _of_container(text: str) -> tuple[Assigned, ...]:
    # Padded: Volcano reads four fields unchecked, and would panic on a shorter entry (decodeContainerDevices).
    return tuple(part_of([*fields, "", "", ""]) for fields in fields_in(text))


def fields_in(text: str) -> Iterator[list[str]]:
    """Yield the fields of each card, or of each assigned part, in an annotation."""
    yield from (part.split(",") for part in text.split(":") if "," in part)


def part_of(fields: Sequence[str]) -> Assigned:
    """Return the assigned part of a card, by the first four fields."""
    uuid, kind, memory, cores = fields[:4]
    return Assigned(uuid, kind, _int32(memory), _int32(cores))


def allocating(domain: str, node: str, now: float) -> dict[str, str]:
    """Return what device plugins wait for on a pod: its node, and that it is to get its devices there."""
    said = {"vgpu-node": node, "vgpu-time": str(int(now)), "bind-phase": "allocating", "bind-time": str(int(now))}
    return {f"{domain}/{name}": value for name, value in said.items()}


def phrase(device: Assigned) -> str:
    """Return what a pod has of a card, for people."""
    cores = f", {device.cores} % of its cores" if device.cores else ""
    return f"{device.uuid} ({device.memory:,} MiB{cores})"


def encoded(containers: Sequence[Sequence[Assigned]]) -> str:
    """Return the annotation of the containers' parts."""
    return ";".join("".join(f"{d.uuid},{d.type},{d.memory},{d.cores}:" for d in devices) for devices in containers)


def _int32(text: str) -> int:
    return read_int(text, bits=32).value  # Volcano ignores the error
