"""A chip that MindCluster cuts: what of it is free. Source: Volcano `ascend310p/vnpu/utils.go` (VChip)."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Final

from pumice.core.devices.ascend.cuts import ASCEND_310P, NULL, OFF, ON, Part
from pumice.core.devices.family import whole_number
from pumice.core.devices.words import short_of

UNUSED: Final = Part(dvpp=OFF)
_FEW_LEFT: Final = {3: 4, 4: 2}
"""Where so many groups are in use, parts with so many cores or more are not to be had."""


@dataclass(slots=True)
class VirtualChip:
    """`unstable`: a pod's part of it is not made yet; `cut`: it is had in parts; `parts`: real names of what is had;
    `pods`: by uid, those that the session found on it.
    """

    number: int
    kind: str
    free: Part
    used: Part = UNUSED
    unstable: bool = False
    cut: bool = False
    parts: list[str] = field(default_factory=list[str])
    pods: list[str] = field(default_factory=list[str])

    def copy(self) -> VirtualChip:
        """An independent one."""
        twin = copy(self)
        twin.parts, twin.pods = list(self.parts), list(self.pods)
        return twin

    def take(self, part: Part) -> None:
        """So much less is free."""
        self.used, self.free = self.used.plus(part), self.free.plus(part, -1)

    def give(self, part: Part) -> None:
        """So much more is free."""
        self.used, self.free = self.used.plus(part, -1), self.free.plus(part)

    def use_dvpp(self, said: str) -> None:
        """The image processing units as a pod takes them (UpdateDVPP)."""
        if said == ON:
            self._dvpp(ON, OFF)
        elif said == OFF and self.used.dvpp == OFF:
            self._dvpp(OFF, ON)
        elif said == NULL and self.used.dvpp != ON:
            self._dvpp(NULL, NULL)

    def leave_dvpp(self, said: str) -> None:
        """The image processing units as a pod leaves them (ResetDVPP)."""
        if said == ON:
            self._dvpp(OFF, ON)

    def _dvpp(self, used: str, free: str) -> None:
        self.used, self.free = self.used._replace(dvpp=used), self.free._replace(dvpp=free)

    def has(self, part: Part) -> bool:
        """Whether a part could be had of it (isChipMeetResReq)."""
        if not self.free.covers(part):
            return False
        if self.kind == ASCEND_310P and self.cut and part.cores >= _FEW_LEFT.get(len(self._groups()), 1 << 30):
            return False
        return not ((part.dvpp == ON and self.free.dvpp != ON) or (part.dvpp == NULL and self.free.dvpp == OFF))

    def against(self, part: Part) -> list[str]:
        """What speaks against it, for people."""
        if self.has(part):
            return ["what a pod has of it is not made yet"] if self.unstable else []
        found = short_of("AI cores", self.free.cores, self.free.cores + self.used.cores, part.cores)
        found += short_of("AI CPUs", self.free.cpus, self.free.cpus + self.used.cpus, part.cpus)
        return found or [f"no part of {part.cores} AI cores (image processing: {part.dvpp}) can be cut off it"]

    def _groups(self) -> set[int]:
        """The groups in use: a real name is like Ascend310P-2c.1cpu-105-0_3."""
        numbers = [whole_number(name.split("_")[-1]) for name in self.parts if "_" in name]
        return {number for number in numbers if number is not None}
