# SPDX-License-Identifier: Apache-2.0
"""Comparisons in which one dimension is enough (Volcano's ...Partly family)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.resources.amounts import CPU, MEMORY, MIN_RESOURCE, PODS, Amounts
from pumice.core.resources.ordering import NO_SCALARS, ZERO, OrderedAmounts, Unset, exceeding_scalars

if TYPE_CHECKING:
    from collections.abc import Mapping


class PartlyOrdered(OrderedAmounts):
    """Comparisons in which any dimension counts."""

    __slots__ = ()

    def less_partly(self, other: Amounts, unset: Unset) -> bool:
        """Return whether some dimension is strictly smaller (Volcano's ``LessPartly``).

        ZERO: a scalar that only ``other`` has counts as smaller here, whatever its value. INFINITY: so does one that
        only this side has.
        """
        if self.milli_cpu < other.milli_cpu or self.memory < other.memory:
            return True
        mine = self.scalars or NO_SCALARS
        theirs = other.scalars or NO_SCALARS
        if _one_sided(mine, theirs, unset):
            return True
        return any(amount < theirs.get(name, 0.0) for name, amount in mine.items())

    def less_equal_partly(self, other: Amounts, unset: Unset) -> bool:
        """Return whether some dimension is smaller or within 0.1; one-sided scalars as in ``less_partly``
        (``LessEqualPartly``).
        """
        if self.milli_cpu - other.milli_cpu < MIN_RESOURCE or self.memory - other.memory < MIN_RESOURCE:
            return True
        mine = self.scalars or NO_SCALARS
        theirs = other.scalars or NO_SCALARS
        if _one_sided(mine, theirs, unset):
            return True
        return any(amount - theirs.get(name, 0.0) < MIN_RESOURCE for name, amount in mine.items())

    def less_equal_partly_with_dimension(self, other: Amounts, req: Amounts | None) -> tuple[bool, list[str]]:
        """Return whether some requested dimension is smaller or within 0.1, ``pods`` left out; with the names that
        hold.
        """
        if req is None:
            return False, []
        names: list[str] = []
        if req.milli_cpu > 0 and self.milli_cpu - other.milli_cpu < MIN_RESOURCE:
            names.append(CPU)
        if req.memory > 0 and self.memory - other.memory < MIN_RESOURCE:
            names.append(MEMORY)
        if req.scalars:
            mine = self.scalars or NO_SCALARS
            theirs = other.scalars or NO_SCALARS
            names += sorted(
                name
                for name, wanted in req.scalars.items()
                if wanted > 0 and name != PODS and mine.get(name, 0.0) - theirs.get(name, 0.0) < MIN_RESOURCE
            )
        return bool(names), names

    def less_equal_partly_with_dimension_zero_filtered(
        self, other: Amounts, req: Amounts | None
    ) -> tuple[bool, list[str]]:
        """Return ``less_equal_partly_with_dimension`` over the dimensions where either side has at least 0.1."""
        if req is None:
            return False, []
        # 0 is within 0.1 of 0, so a requested dimension that neither side has would always hold.
        return self.less_equal_partly_with_dimension(other, _restricted(req, self, other))

    def greater_partly(self, other: Amounts, unset: Unset) -> tuple[bool, list[str]]:
        """Return whether some dimension is larger by at least 0.1, with names: the negation of
        ``less_equal_with_resources_name``.
        """
        holds, names = self.less_equal_with_resources_name(other, unset)
        return not holds, names

    def greater_partly_with_dimension(self, other: Amounts | None, req: Amounts | None) -> tuple[bool, list[str]]:
        """Return whether some requested dimension is larger, without tolerance, ``pods`` left out; with names. Without
        ``other``: False.
        """
        if req is None:
            return False, []
        other = other or NOTHING
        names: list[str] = []
        if req.milli_cpu > 0 and self.milli_cpu > other.milli_cpu:
            names.append(CPU)
        if req.memory > 0 and self.memory > other.memory:
            names.append(MEMORY)
        if req.scalars:
            names += exceeding_scalars(self.scalars or NO_SCALARS, other.scalars or NO_SCALARS, req.scalars)
        return bool(names), names

    def greater_partly_with_relevant_dimensions(
        self, other: Amounts | None, req: Amounts | None
    ) -> tuple[bool, list[str]]:
        """Return whether some dimension that ``other`` has is larger: cpu and memory of at least 0.1, and its
        scalars.
        """
        if req is None:
            return False, []
        other = other or NOTHING
        theirs = other.scalars or NO_SCALARS
        relevant = Amounts(
            # cpu and memory count as absent below 0.1, but a scalar as present even with 0
            # (GreaterPartlyWithRelevantDimensions).
            0.0 if other.milli_cpu < MIN_RESOURCE else req.milli_cpu,
            0.0 if other.memory < MIN_RESOURCE else req.memory,
            {name: wanted for name, wanted in (req.scalars or NO_SCALARS).items() if name in theirs},
        )
        return self.greater_partly_with_dimension(other, relevant)


NOTHING = Amounts()


def _one_sided(mine: Mapping[str, float], theirs: Mapping[str, float], unset: Unset) -> bool:
    """Return whether the side that decides (ZERO: theirs, INFINITY: mine) has a scalar the other lacks."""
    if unset is ZERO:
        return not theirs.keys() <= mine.keys()
    return not mine.keys() <= theirs.keys()


def _restricted(req: Amounts, left: Amounts, right: Amounts) -> Amounts:
    """Return ``req`` without the dimensions that are below 0.1 on both sides."""

    def used(name: str) -> bool:
        return not (left.get(name) < MIN_RESOURCE and right.get(name) < MIN_RESOURCE)

    return Amounts(
        req.milli_cpu if used(CPU) else 0.0,
        req.memory if used(MEMORY) else 0.0,
        {name: wanted for name, wanted in (req.scalars or NO_SCALARS).items() if used(name)},
    )
