# SPDX-License-Identifier: Apache-2.0
"""The ConfigMap of devices about virtual GPUs: the names of resources, and how cards may be cut into slices.

Source: Volcano `api/devices/config`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pumice.core.objects.metadata import Object

NUMBER: Final = "volcano.sh/vgpu-number"
MEMORY: Final = "volcano.sh/vgpu-memory"
CORES: Final = "volcano.sh/vgpu-cores"


class Instance(NamedTuple):
    """A kind of slice: MiB of each, and how many a card can be cut into."""

    name: str
    memory: int
    most: int


class Geometry(NamedTuple):
    """One way to cut a card into slices."""

    group: str
    instances: tuple[Instance, ...]


class VgpuSettings(NamedTuple):
    """Names of resources and ways to cut cards. `percentage`: the resource that stands for a share of a card's memory,
    "" for none. `geometries`: (models, ways to cut them) in order; a card uses the first whose model its type contains.
    `factor`: of a unit of memory.
    """

    number: str = NUMBER
    memory: str = MEMORY
    cores: str = CORES
    percentage: str = ""
    factor: int = 0
    geometries: tuple[tuple[tuple[str, ...], tuple[Geometry, ...]], ...] = ()

    def geometry_of(self, card_type: str) -> tuple[Geometry, ...] | None:
        """Return the ways to cut a card of this type; None for an unknown type."""
        # The first entry that knows the model counts, even if its list of geometries is empty
        # (extractGeometryFromType).
        for models, ways in self.geometries:
            if any(model in card_type for model in models):
                return ways
        return None


DEFAULT: Final = VgpuSettings()


def settings_of(nvidia: Object | None) -> VgpuSettings:
    """Return the part `nvidia` of the ConfigMap as plain data; the default without a ConfigMap (None), or where a value
    has a type that Volcano cannot read.
    """
    try:
        return DEFAULT if nvidia is None else _settings(nvidia)
    except (AttributeError, TypeError, ValueError):
        return DEFAULT


def _settings(nvidia: Object) -> VgpuSettings:
    listed: list[Object] = nvidia.get("knownMigGeometries") or []
    return VgpuSettings(
        number=str(nvidia.get("resourceCountName") or ""),
        memory=str(nvidia.get("resourceMemoryName") or ""),
        cores=str(nvidia.get("resourceCoreName") or ""),
        percentage=str(nvidia.get("resourceMemoryPercentageName") or ""),
        factor=int(nvidia.get("gpuMemoryFactor") or 0),
        geometries=tuple((tuple(map(str, each.get("models") or ())), _ways(each)) for each in listed),
    )


def _ways(known: Object) -> tuple[Geometry, ...]:
    return tuple(
        Geometry(
            str(way.get("group") or ""),
            tuple(
                Instance(str(one.get("name") or ""), int(one.get("memory") or 0), int(one.get("count") or 0))
                for one in way.get("geometries") or ()
            ),
        )
        for way in known.get("allowedGeometries") or ()
    )
