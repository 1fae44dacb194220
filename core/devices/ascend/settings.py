# SPDX-License-Identifier: Apache-2.0
"""The ConfigMap of devices about virtual NPUs: chips, and the templates by which they are cut.

Source: Volcano `api/devices/config` (VNPUConfig).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pumice.core.objects.metadata import Object, is_mapping, rows


class CutTemplate(NamedTuple):
    """A part of a chip, by its MiB."""

    name: str
    memory: int


class ChipModel(NamedTuple):
    """A model of chips. `word`: its name in annotations of pods and nodes; `number`, `memory`: the resources by which
    pods request chips and MiB of them; `allocatable`: the MiB of a whole chip; `capacity`: the largest request for one
    chip; `templates`: from the smallest.
    """

    word: str
    number: str
    memory: str
    allocatable: int
    capacity: int
    templates: tuple[CutTemplate, ...] = ()

    def trimmed(self, memory: int) -> CutTemplate:
        """Return the template for a request of so many MiB: the smallest one with as much, a whole chip (which has no
        name), or None for a request that no chip meets.
        """
        for template in self.templates:
            # Requests are rounded up to what the chip can be cut into, so a pod is charged for more than it asked for.
            if memory <= template.memory:
                return template
        return CutTemplate("", self.allocatable if memory <= self.capacity else 0)


DEFAULT: Final = (
    ChipModel(
        "Ascend310P",
        "huawei.com/Ascend310P",
        "huawei.com/Ascend310P-memory",
        21527,
        24576,
        (CutTemplate("vir01", 3072), CutTemplate("vir02", 6144), CutTemplate("vir04", 12288)),
    ),
)


def chip_models(config: Object | None) -> tuple[ChipModel, ...]:
    """Return the part `vnpus` of the ConfigMap as plain data; the default without a ConfigMap (None), or where a value
    has a type that Volcano cannot read.
    """
    try:
        return DEFAULT if config is None else _models(config)
    except (AttributeError, TypeError, ValueError):
        return DEFAULT


def _models(config: Object) -> tuple[ChipModel, ...]:
    said: Any = config.get("vnpus") or []
    listed: list[Object] = rows(said, "configs") if is_mapping(said) else said
    return tuple(_model(each) for each in listed)


def _model(said: Object) -> ChipModel:
    listed: list[Object] = said.get("templates") or []
    templates = [CutTemplate(str(each.get("name") or ""), int(each.get("memory") or 0)) for each in listed]
    return ChipModel(
        word=str(said.get("commonWord") or ""),
        number=str(said.get("resourceName") or ""),
        memory=str(said.get("resourceMemoryName") or ""),
        allocatable=int(said.get("memoryAllocatable") or 0),
        capacity=int(said.get("memoryCapacity") or 0),
        # Sorted by size, since `trimmed` takes the first that is large enough; Volcano sorts them too (InitDevices).
        templates=tuple(sorted(templates, key=lambda each: each.memory)),
    )
