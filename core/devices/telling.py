"""The cards that a pod was given, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.devices.ascend.hami import held
from pumice.core.devices.ascend.npu_node import CORE
from pumice.core.devices.gpushare import INDEX
from pumice.core.devices.vgpu.codec import IDS, assigned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pumice.core.devices.vgpu.codec import Assigned

_PREFIX, _SUFFIX = "hami.io/", "-devices-allocated"


def given_cards(notes: Mapping[str, str]) -> list[str]:
    """The cards that a pod was given by its annotations, a phrase for each."""
    return list(dict.fromkeys(_given(notes)))


def _given(notes: Mapping[str, str]) -> Iterator[str]:
    if notes.get(INDEX):
        yield from (f"card {index}" for index in notes[INDEX].split(","))
    for devices in assigned(notes.get(IDS, "")):
        yield from map(_part, devices)
    for name, text in sorted(notes.items()):
        if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
            for part in text.split(";"):
                yield from map(_part, held(part))
    if notes.get(CORE):
        chips, _, template = notes[CORE].partition("-")
        yield from (f"chip {chip}" + (f" ({template})" if template else "") for chip in chips.split(","))


def _part(device: Assigned) -> str:
    cores = f", {device.cores} % of its cores" if device.cores else ""
    return f"{device.uuid} ({device.memory:,} MiB{cores})"
