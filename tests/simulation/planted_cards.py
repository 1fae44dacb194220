# pyright: reportPrivateUsage=false
"""Realistic defects about cards of every kind, and about the locks of nodes: what each does, and where it is put in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pumice.cluster.kernel import pre_bind
from pumice.core.devices import locks
from pumice.core.devices.ascend import HamiNpu, MindClusterNpu
from pumice.core.devices.gpushare import GpuShare
from pumice.core.state.nodes import NodeTable
from pumice.core.state.snapshot import AssumedPods, Snapshot
from tests.simulation import defects
from tests.simulation.planting import Plant, nothing, replace, wrap


def all_there(self: GpuShare, rows: Any, memory: int = 0) -> Any:
    """Every healthy card has room."""
    return self._cards.there[rows].copy()


def held_when(answer: Callable[[str | None], bool]) -> Plant:
    def is_held(said: str | None, _: float) -> bool:
        return answer(said)

    def plant(patch: pytest.MonkeyPatch) -> None:
        for module in (locks, pre_bind):
            patch.setattr(module, "lock_is_held", is_held)

    return plant


CARD_BUGS: dict[str, tuple[Plant, str, tuple[str, ...]]] = {
    "shared cards have as much memory as anybody asks for": (
        replace(GpuShare, "_roomy", all_there),
        "cards-memory",
        ("within-cards",),
    ),
    "cards that are had whole are had again": (
        replace(GpuShare, "_idle", all_there),
        "cards-number",
        ("within-cards",),
    ),
    "slices that are promised to a pod on its way are given to another": (
        replace(Snapshot, "annotations_of", defects.as_the_api_has_it),
        "cards-mig",
        ("within-cards",),
    ),
    "who is on an NPU is not counted": (replace(HamiNpu, "_shift", nothing), "cards-npu", ("within-cards",)),
    "a failed bind leaves its NPU promised": (wrap(AssumedPods, "drop", defects.keeps_promises), "cards-npu", ()),
    "cores of NPUs are not taken off a node": (
        wrap(NodeTable, "place", defects.without_scalars),
        "cards-chips",
        ("actors-live",),
    ),
    "what a pod is given of a chip counts from the next cycle on": (
        replace(MindClusterNpu, "_count", nothing),
        "cards-chips",
        ("within-cards",),
    ),
    "a lock of a node counts for ever": (held_when(lambda said: said is not None), "cards-locks", ("quiesces",)),
    "a lock of a node counts for nothing": (held_when(lambda _: False), "cards-locks", ("locks-heeded",)),
}
"""Defect -> how it is put in, the profile whose storms find it, and by which invariants when it is certain which."""
