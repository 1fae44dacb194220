# SPDX-License-Identifier: Apache-2.0
"""Volcano's ``api.Resource``: arithmetic on top of the comparisons, and conversion from and to Kubernetes lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pumice.core.errors import ResourceAssertionError
from pumice.core.resources.amounts import LARGEST, MIN_RESOURCE, Amounts
from pumice.core.resources.lists import amounts_from_list
from pumice.core.resources.ordering import INFINITY, NO_SCALARS, ZERO, Unset
from pumice.core.resources.partly import PartlyOrdered

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


class Resource(PartlyOrdered):
    """A resource: cpu in milli-units, memory in bytes, scalars in milli-units (``pods``: a count); None scalars are
    Go's nil map.

    ``MaxTaskNum`` of Volcano is not here: it always equals the scalar ``pods``.
    """

    __slots__ = ()

    @classmethod
    def from_list(cls, quantities: Mapping[str, Any] | None, ignored: Collection[str] = ()) -> Self:
        """Return Volcano's ``NewResource`` of a Kubernetes resource list (name -> quantity text or number).

        Dropped: ``count/...``, names that are not scalar resources of Kubernetes, and ``ignored`` devices. Raises
        QuantityError.
        """
        return cls(*amounts_from_list(quantities, ignored))

    @classmethod
    def infinite(cls) -> Self:
        """Return Volcano's ``InfiniteResource``: the largest float for cpu and memory, no scalars."""
        return cls(LARGEST, LARGEST)

    def add(self, other: Amounts) -> Self:
        """Add in place (``self += other``) and return self."""
        self.milli_cpu += other.milli_cpu
        self.memory += other.memory
        theirs = other.scalars
        # Not before there is something to add: a nil map must stay nil, as in Go.
        if theirs:
            mine = self.scalars
            if mine is None:
                mine = self.scalars = {}
            for name, amount in theirs.items():
                mine[name] = mine.get(name, 0.0) + amount
        return self

    def sub(self, other: Resource) -> Self:
        """Subtract in place (``self -= other``) and return self. ResourceAssertionError when ``other`` is not
        tolerantly within self.
        """
        if not other.less_equal(self, ZERO):
            raise ResourceAssertionError(
                f"resource is not sufficient to do operation: <{self.string()}> sub <{other.string()}>"
            )
        return self.sub_without_assert(other)

    def sub_without_assert(self, other: Amounts) -> Self:
        """Subtract in place, also below zero, and return self. Where self's scalars are None, the other's are lost."""
        self.milli_cpu -= other.milli_cpu
        self.memory -= other.memory
        mine = self.scalars
        if mine is not None and other.scalars:
            for name, amount in other.scalars.items():
                mine[name] = mine.get(name, 0.0) - amount
        return self

    def multi(self, ratio: float) -> Self:
        """Multiply in place (``self *= ratio``) and return self."""
        self.milli_cpu *= ratio
        self.memory *= ratio
        if self.scalars:
            self.scalars = {name: amount * ratio for name, amount in self.scalars.items()}
        return self

    def set_max_resource(self, other: Amounts | None) -> None:
        """Raise each dimension to the other's where that is larger (``SetMaxResource``)."""
        if other is None:
            return
        self.milli_cpu = max(self.milli_cpu, other.milli_cpu)
        self.memory = max(self.memory, other.memory)
        if not other.scalars:
            return
        if self.scalars is None:
            self.scalars = other.scalars.copy()
            return
        for name, amount in other.scalars.items():
            # Not max() with 0: a negative amount of which self has none is taken, too.
            if name not in self.scalars or amount > self.scalars[name]:
                self.scalars[name] = amount

    def min_dimension_resource(self, other: Amounts, unset: Unset) -> Self:
        """Lower each of one's own dimensions to the other's, and return self (``MinDimensionResource``).

        A scalar the other lacks becomes 0 under ZERO and stays under INFINITY.
        """
        self.milli_cpu = min(self.milli_cpu, other.milli_cpu)
        self.memory = min(self.memory, other.memory)
        if self.scalars:
            theirs = other.scalars or NO_SCALARS
            for name, amount in self.scalars.items():
                if name in theirs:
                    self.scalars[name] = min(amount, theirs[name])
                elif unset is ZERO:
                    self.scalars[name] = 0.0
        return self

    def fit_delta(self, req: Amounts) -> Self:
        """Return the rest after ``req`` and 0.1 more per requested dimension; negative values are short
        (``FitDelta``).
        """
        if req.milli_cpu > 0:
            self.milli_cpu -= req.milli_cpu + MIN_RESOURCE
        if req.memory > 0:
            self.memory -= req.memory + MIN_RESOURCE
        # An empty map even where nothing is requested, as FitDelta makes one first.
        mine = {} if self.scalars is None else self.scalars
        self.scalars = mine
        for name, amount in (req.scalars or NO_SCALARS).items():
            if amount > 0:
                mine[name] = mine.get(name, 0.0) - (amount + MIN_RESOURCE)
        return self

    def diff(self, other: Amounts, unset: Unset) -> tuple[Resource, Resource]:
        """Return (how much self exceeds other, how much other exceeds self), per dimension (``Diff``).

        Under INFINITY a scalar that one side lacks counts as unlimited there, and the difference is marked with -1.
        """
        more, fewer = Resource(scalars={}), Resource(scalars={})
        more.milli_cpu, fewer.milli_cpu = _apart(self.milli_cpu, other.milli_cpu)
        more.memory, fewer.memory = _apart(self.memory, other.memory)
        mine, theirs = self.scalars or NO_SCALARS, other.scalars or NO_SCALARS
        default = float(unset.value)
        for name in {**mine, **theirs}:
            left, right = mine.get(name, default), theirs.get(name, default)
            # -1 marks a scalar that is missing under INFINITY; a real amount of -1 looks the same, here as in Volcano.
            if left == INFINITY.value:
                more.set_scalar(name, left)
            elif right == INFINITY.value:
                fewer.set_scalar(name, right)
            elif left > right:
                more.set_scalar(name, left - right)
            else:
                fewer.set_scalar(name, right - left)
        return more, fewer


def _apart(left: float, right: float) -> tuple[float, float]:
    return (left - right, 0.0) if left > right else (0.0, right - left)


def exceeded_part(left: Resource | None, right: Amounts | None) -> Resource:
    """Return the part of ``left`` beyond ``right``, per dimension (``ExceededPart``); ``left`` itself without
    ``right``.
    """
    if left is None:
        return Resource()
    return left if right is None else left.diff(right, ZERO)[0]


def intersection(left: Amounts, right: Amounts) -> list[str]:
    """Return the names where both sides have at least 0.1 (``Intersection``)."""
    mine = frozenset(left.resource_names())
    return [name for name in right.resource_names() if name in mine]


def higher(left: Amounts, right: Amounts) -> Resource:
    """Return the per-dimension maximum (Volcano's ``helpers.Max``): scalars of both sides that are not negative."""
    scalars: dict[str, float] | None = None
    if left.scalars is not None or right.scalars is not None:
        # From 0 on: a negative scalar of one side alone is left out, not raised to 0 (`api/helpers/helpers.go`, Max).
        scalars = {name: amount for name, amount in (left.scalars or NO_SCALARS).items() if amount >= 0}
        for name, amount in (right.scalars or NO_SCALARS).items():
            if amount >= 0:
                scalars[name] = max(amount, scalars.get(name, 0.0))
    return Resource(max(left.milli_cpu, right.milli_cpu), max(left.memory, right.memory), scalars)


def share(part: float, whole: float) -> float:
    """Return ``part / whole``; with a whole of 0, 0 for a part of 0 and 1 for others (Volcano's ``helpers.Share``)."""
    if whole == 0:
        return 0.0 if part == 0 else 1.0
    return part / whole
