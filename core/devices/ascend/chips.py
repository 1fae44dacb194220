# SPDX-License-Identifier: Apache-2.0
"""The chips of all nodes as columns, as HAMi's device plugin registers them.

Source: Volcano `ascend/hami/device_info.go` (NewAscendDevices), `api/devices/util.go` (DeviceInfo).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from pumice.core.devices.columns import MOST_CARDS, NodeCards, column_of, numbers_alike
from pumice.core.devices.family import amount
from pumice.core.objects.metadata import Object, is_list, is_mapping, section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.devices.ascend.settings import ChipModel
    from pumice.core.devices.columns import IntArray
    from pumice.core.devices.family import BoolArray
    from pumice.core.objects.node import NodeSpec

NETWORK: Final = "NetworkID"
_INT32: Final = 2**31
_NUMBERS: Final = ("count", "devmem", "devcore", "index", "numa")
_TEXTS: Final = ("id", "type", "mode", "devicevendor")
_TOLD: Final = (
    "id",
    "index",
    "count",
    "devmem",
    "devcore",
    "type",
    "numa",
    "mode",
    "health",
    "devicevendor",
    "custominfo",
)


class Chip(NamedTuple):
    """A chip: how many may share it (`sharers`), its MiB and cores; `network`: the group of chips that it is wired to,
    None without a number; `wired`: whether the node names a network; `told`: what the node reports of it, as Volcano's
    struct encodes to JSON.
    """

    uuid: str
    sharers: int
    memory: int
    cores: int
    network: int | None
    wired: bool
    told: bytes = b"{}"


@dataclass(frozen=True)
class Chips(NodeCards):
    """Chips of all nodes. `count`, `memory`, `cores` int64 [N, C], `there` bool [N, C]; `chips`: of each node; `alike`:
    the same number for nodes that differ only in the names of their chips.
    """

    count: IntArray
    memory: IntArray
    cores: IntArray
    there: BoolArray
    chips: list[tuple[Chip, ...]]
    alike: list[int]


def chips_of(specs: Sequence[NodeSpec], model: ChipModel) -> Chips:
    """Return the chips of one model on nodes, in their order."""
    registered_ = [_of_node(spec, model) for spec in specs]
    chips = [each[:MOST_CARDS] for each in registered_]
    return Chips(
        claimed=[len(each) for each in registered_],
        count=column_of(chips, attrgetter("sharers")),
        memory=column_of(chips, attrgetter("memory")),
        cores=column_of(chips, attrgetter("cores")),
        there=column_of(chips, lambda _: 1) > 0,
        chips=chips,
        # Without the uuid and without `told`, on which no score depends.
        alike=numbers_alike(tuple(chip[1:-1] for chip in each) for each in chips),
    )


def _of_node(spec: NodeSpec, model: ChipModel) -> tuple[Chip, ...]:
    text = spec.annotations.get(f"hami.io/node-register-{model.word}")
    allocatable = section(section(spec.node, "status"), "allocatable")
    return registered(text) if text is not None and amount(allocatable, model.number) else ()


def memories(spec: NodeSpec, models: Sequence[ChipModel]) -> frozenset[str]:
    """Return the resources that stand for the memory of a node's chips; Volcano does not count them
    (GetIgnoredDevices).
    """
    return frozenset(model.memory for model in models if model.memory and _of_node(spec, model))


@lru_cache(maxsize=16384)
def registered(text: str) -> tuple[Chip, ...]:
    """Return the chips that a node registered; none when the text cannot be read. Of two chips with one name the last
    counts.
    """
    try:
        listed: Any = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return ()
    chips = [_chip(each) for each in listed] if is_list(listed) else []
    # One chip that Go cannot decode loses the list: json.Unmarshal fails, and NewAscendDevices passes over the node.
    known = [chip for chip in chips if chip is not None]
    return tuple({chip.uuid: chip for chip in known}.values()) if len(known) == len(chips) else ()


def _chip(said: object) -> Chip | None:
    if not is_mapping(said):
        return None
    # Go's encoding/json finds fields whatever their case.
    fields: Object = {key.lower(): value for key, value in said.items()}
    numbers: dict[str, int] = {name: fields.get(name) or 0 for name in _NUMBERS}
    # `type`, not isinstance: a boolean is an int to Python, and an error to Go.
    if not all(type(value) is int and -_INT32 <= value < _INT32 for value in numbers.values()):
        return None
    if not all(isinstance(fields.get(name) or "", str) for name in _TEXTS):
        return None
    custom = section(fields, "custominfo")
    if not is_mapping(custom) or not isinstance(fields.get("health") or False, bool):
        return None
    network = custom.get(NETWORK)
    number = int(network) if isinstance(network, int | float) and not isinstance(network, bool) else None
    count, memory, cores = (numbers[name] for name in _NUMBERS[:3])
    return Chip(str(fields.get("id") or ""), count, memory, cores, number, NETWORK in custom, _told(fields))


def _told(fields: Object) -> bytes:
    """Return the JSON of `DeviceInfo`: empty fields are left out, except the scores of pairs."""
    said = {name: fields[name] for name in _TOLD if fields.get(name)}
    pairs = fields.get("devicepairscore")
    # Written even when empty: in Go `omitempty` has no effect on a field that is a struct
    # (`api/devices/device_info.go`).
    return msgspec.json.encode({**said, "devicepairscore": pairs if isinstance(pairs, dict) else {}})
