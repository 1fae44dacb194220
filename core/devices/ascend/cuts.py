# SPDX-License-Identifier: Apache-2.0
"""Chips as MindCluster cuts them, and the templates by kind of chip. Source: Volcano `third_party/mindcluster/plugin`,
`plugins/deviceshare/devices/ascend/310p/vnpu/init_policy.go`.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pumice.core.devices.family import short_of
from pumice.core.go_numbers import parse_int

OFF, NULL, ON = "no", "null", "yes"
LOW, HIGH = "low", "high"
ASCEND_310P: Final = "Ascend310P"


class Part(NamedTuple):
    """AI cores, AI CPUs, and the state of the image processing units (DVPP): taken, left, or shared."""

    cores: int = 0
    cpus: int = 0
    dvpp: str = ""

    def plus(self, other: Part, sign: int = 1) -> Part:
        # Volcano's Add and Sub leave DVPP to UpdateDVPP and ResetDVPP: its three states cannot be added up.
        """Add another part to this one; the state of the image processing units stays."""
        return self._replace(cores=self.cores + sign * other.cores, cpus=self.cpus + sign * other.cpus)

    def covers(self, other: Part) -> bool:
        """Return whether there are as many of both."""
        return self.cores >= other.cores and self.cpus >= other.cpus


NOTHING: Final = Part()

_OF_310P: Final = {
    "vir01": Part(1, 1, NULL),
    "vir02": Part(2, 2, NULL),
    "vir02_1c": Part(2, 1, NULL),
    "vir04": Part(4, 4, NULL),
    "vir04_3c": Part(4, 3, NULL),
    "vir04_3c_ndvpp": Part(4, 3, OFF),
    "vir04_4c_dvpp": Part(4, 4, ON),
}
_OF_910_B: Final = {
    "vir06_1c_16g": Part(6, 1, NULL),
    "vir03_1c_8g": Part(3, 1, NULL),
    "vir12_3c_32g": Part(12, 3, NULL),
}

TEMPLATES: Final[dict[str, dict[str, Part]]] = {
    ASCEND_310P: _OF_310P,
    "Ascend910": {
        "vir02": Part(2, 1, NULL),
        "vir04": Part(4, 1, NULL),
        "vir08": Part(8, 3, NULL),
        "vir16": Part(16, 7, NULL),
    },
    "910B1": _OF_910_B,
    "910B2C": _OF_910_B,
    "910B2": _OF_910_B,
    "910B3": {"vir05_1c_16g": Part(5, 1, NULL), "vir10_3c_32g": Part(10, 3, NULL)},
    "910B4": {
        "vir05_1c_8g": Part(5, 1, NULL),
        "vir10_3c_16g_nm": Part(10, 3, OFF),
        "vir10_4c_16g_m": Part(10, 4, ON),
        "vir10_3c_16g": Part(10, 3, NULL),
    },
}
"""What a part that a pod has amounts to: of Ascend310P by the kind of chip, else by its type."""

# A tuple, not a dictionary: Ascend310P has chips of 8 and of 10 AI cores (initTemplate).
CPUS: Final = (
    (ASCEND_310P, 8, 7),
    ("910B1", 25, 6),
    ("910B2C", 24, 6),
    ("910B3", 20, 6),
    ("910B4", 20, 6),
    ("910B2", 24, 6),
    (ASCEND_310P, 10, 7),
)
"""(kind or type, AI cores of a chip, its AI CPUs); the last that applies counts."""


def template_for(cores: int, level: str, dvpp: str) -> Part:
    """Return the part for a pod that requests so many cores of a chip; None where chips are not cut so."""
    if cores == 1:
        return _OF_310P["vir01"]
    if cores == 2:
        return _OF_310P["vir02_1c" if level == LOW else "vir02"]
    # Volcano looks an unknown template up in a map and goes on with the empty value, without an error (GetPodResource).
    if cores != 4:
        return NOTHING
    # Only 4 cores come with or without image processing; for fewer the label is not looked at (`utils.go`).
    if dvpp in (ON, OFF):
        return _OF_310P["vir04_4c_dvpp" if dvpp == ON else "vir04_3c_ndvpp"]
    return _OF_310P["vir04_3c" if level == LOW else "vir04"]


def name_of(part: Part) -> str | None:
    """Return the template of exactly that part; None without one."""
    return next((name for name, each in _OF_310P.items() if each == part), None)


def lesser(part: Part) -> Part | None:
    """Return a template of as many cores with fewer CPUs, for chips that lack CPUs; None without one."""
    if part.cores == part.cpus == 2:
        return part._replace(cpus=1)
    # 4 cores with image processing keep their 4 CPUs: no template has them with 3 (taskAICPUCanBeDowngrade).
    if part.cores == part.cpus == 4 and part.dvpp != ON:
        return part._replace(cpus=3)
    return None


# --- A chip and what of it is free (Volcano's VChip)
# Source: Volcano `ascend310p/vnpu/utils.go` (VChip).

UNUSED: Final = Part(dvpp=OFF)
_FEW_LEFT: Final = {3: 4, 4: 2}
"""Where so many groups are in use, parts with so many cores or more are not to be had."""


@dataclass(slots=True)
class VirtualChip:
    """A chip with its parts. `unstable`: a pod's part of it is not made yet; `cut`: it is used in parts; `parts`: real
    names of the parts in use; `pods`: the session's pods on it, by uid.
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
        """Return an independent copy."""
        twin = copy(self)
        twin.parts, twin.pods = list(self.parts), list(self.pods)
        return twin

    def take(self, part: Part) -> None:
        """Reduce the free amount."""
        self.used, self.free = self.used.plus(part), self.free.plus(part, -1)

    def give(self, part: Part) -> None:
        """Raise the free amount."""
        self.used, self.free = self.used.plus(part, -1), self.free.plus(part)

    def use_dvpp(self, said: str) -> None:
        """Take the image processing units for a pod (UpdateDVPP)."""
        if said == ON:
            self._dvpp(ON, OFF)
        elif said == OFF and self.used.dvpp == OFF:
            self._dvpp(OFF, ON)
        # The first pod without a wish turns the free units into "null", so a later pod that insists on them finds none
        # here.
        elif said == NULL and self.used.dvpp != ON:
            self._dvpp(NULL, NULL)

    def leave_dvpp(self, said: str) -> None:
        """Free the image processing units of a pod (ResetDVPP)."""
        # Volcano resets only "yes" (ResetDVPP): when the last pod without a wish leaves, the chip stays at "null".
        if said == ON:
            self._dvpp(OFF, ON)

    def _dvpp(self, used: str, free: str) -> None:
        self.used, self.free = self.used._replace(dvpp=used), self.free._replace(dvpp=free)

    def has(self, part: Part) -> bool:
        """Return whether the chip has room for the part (isChipMeetResReq)."""
        if not self.free.covers(part):
            return False
        # Only a chip that was cut is asked for its groups: Volcano looks at SegmentFlag first (isChipVGroupValid).
        if self.kind == ASCEND_310P and self.cut and part.cores >= _FEW_LEFT.get(len(self._groups()), 1 << 30):
            return False
        return not ((part.dvpp == ON and self.free.dvpp != ON) or (part.dvpp == NULL and self.free.dvpp == OFF))

    def against(self, part: Part) -> list[str]:
        """Return what speaks against the chip, for people."""
        if self.has(part):
            return ["what a pod has of it is not made yet"] if self.unstable else []
        found = short_of("AI cores", self.free.cores, self.free.cores + self.used.cores, part.cores)
        found += short_of("AI CPUs", self.free.cpus, self.free.cpus + self.used.cpus, part.cpus)
        return found or [f"no part of {part.cores} AI cores (image processing: {part.dvpp}) can be cut off it"]

    def _groups(self) -> set[int]:
        """Return the groups in use: a real name looks like Ascend310P-2c.1cpu-105-0_3."""
        numbers = [parse_int(name.split("_")[-1]) for name in self.parts if "_" in name]
        return {number for number in numbers if number is not None}
