"""Counting a pod in on the chips that MindCluster gave it, or out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.devices.ascend.cuts import Part
    from pumice.core.devices.ascend.npu_node import NpuNode
    from pumice.core.devices.ascend.virtual_chip import VirtualChip


class VirtualChipUse:
    """Counting a pod in, or out."""

    def __init__(self, *, taken: bool) -> None:
        self._taken = taken

    def of(self, node: NpuNode, numbers: Sequence[str], part: Part, *, cuts: bool) -> None:
        """Of each of the chips so much."""
        for number, chip in node.chips.items():
            for _ in (each for each in numbers if each == str(number)):
                self._one(chip, part, cuts=cuts)

    def _one(self, chip: VirtualChip, part: Part, *, cuts: bool) -> None:
        if self._taken:
            chip.take(part)
            chip.cut |= cuts
            chip.use_dvpp(part.dvpp)
        else:
            chip.give(part)
            chip.leave_dvpp(part.dvpp)

    def note(self, node: NpuNode, template: str, uid: str) -> None:
        """Whose it is."""
        if self._taken:
            node.in_use.setdefault(template, set()).add(uid)
            return
        uids = node.in_use.get(template, set())
        uids.discard(uid)
        if template in node.in_use and not uids:
            del node.in_use[template]
