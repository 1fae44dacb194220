# SPDX-License-Identifier: Apache-2.0
"""The devices that a node's manifest gives it, for the node agents to report: the annotation `pumice.dev/devices`.

{"vgpu": {"cards": 4, "memory": 16384, "split": 10, "type": "NVIDIA-Tesla-V100", "mode": "hami-core"},
 "gpu": {"cards": 2, "memory": 16384},
 "numa": {"cells": 2, "cpus": 16, "policy": "single-numa-node", "reserved": 1}}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from pumice.core.objects.metadata import annotations_of

if TYPE_CHECKING:
    from pumice.core.objects.metadata import Object

ANNOTATION: Final = "pumice.dev/devices"
MOST_CARDS: Final = 64
_Some = Annotated[int, msgspec.Meta(ge=1, le=1024)]
_Memory = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
_Cards = Annotated[int, msgspec.Meta(ge=1, le=MOST_CARDS)]


class VirtualGpus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cards of `memory` MiB, each for at most `split` pods."""

    cards: _Cards
    memory: _Memory
    split: _Some = 10
    type: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9 _.-]+$")] = "NVIDIA-Tesla-V100"
    mode: Literal["hami-core", "mig"] = "hami-core"


class SharedGpus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cards of `memory` MiB."""

    cards: _Cards
    memory: _Memory


class NumaCells(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The `cpus` of the node in all, in equal cells; `reserved` ones are not for pods."""

    cells: Annotated[int, msgspec.Meta(ge=1, le=64)]
    cpus: _Some
    policy: Literal["none", "best-effort", "restricted", "single-numa-node"] = "best-effort"
    reserved: Annotated[int, msgspec.Meta(ge=0, le=1024)] = 0


class NodeDevices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The devices of one node."""

    vgpu: VirtualGpus | None = None
    gpu: SharedGpus | None = None
    numa: NumaCells | None = None


NONE: Final = NodeDevices()


def read_devices(text: str) -> NodeDevices:
    """Return the devices. Raises ValueError, which says what is wrong and where."""
    try:
        return msgspec.json.decode(text.encode(), type=NodeDevices)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None


def devices_of(node: Object) -> NodeDevices:
    """Return the devices of a node; none where the annotation cannot be read."""
    text = annotations_of(node).get(ANNOTATION)
    try:
        return NONE if text is None else read_devices(text)
    except ValueError:
        return NONE
