# SPDX-License-Identifier: Apache-2.0
"""Quantities in objects: readable, not negative, not too large. The parser itself is Go's and refuses little."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

from pumice.cluster.api.admission.rules import Admission, Lookup
from pumice.cluster.api.names import qualified_name_problem
from pumice.cluster.api.refusals import Cause, invalid_value, too_many
from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import Object, section
from pumice.core.quantity import Quantity, quantity_of
from pumice.core.texts import LONGEST

_INT64_MOST: Final = 2**63 - 1
_IN_UNITS: Final = ("memory", "ephemeral-storage", "storage", "pods")  # the rest is counted in thousandths

_BEYOND: Final = 20  # 10**20 is above every int64
_TENS: Final[tuple[int, ...]] = tuple(10**exponent for exponent in range(_BEYOND + 1))

MOST_RESOURCES: Final = 64
"""Names of resources in one object: each that the cluster has never heard of is one more column over all nodes."""

Amount = str | int | float


def too_large(name: str, quantity: Quantity) -> bool:
    """Return whether the exact amount exceeds an int64 in the unit in which the scheduler counts this resource."""
    whole = name in _IN_UNITS or name.startswith("hugepages-")
    exponent = quantity.exponent + (0 if whole else 3)
    if exponent >= 0:
        if exponent > _BEYOND:
            return quantity.unscaled != 0
        return abs(quantity.unscaled) * _TENS[exponent] > _INT64_MOST
    return abs(quantity.unscaled) > _INT64_MOST * int(10 ** abs(exponent))


def amount_problem(name: str, amount: Amount) -> str | None:
    """Return why the amount of the resource is not valid, or None."""
    if isinstance(amount, str) and len(name) + len(amount) > LONGEST:
        # past the cache: long texts of a client would fill it
        return _problem.__wrapped__(name, amount)
    return _problem(name, amount)


@lru_cache(maxsize=16384)
def _problem(name: str, amount: Amount) -> str | None:
    try:
        quantity = quantity_of(amount)
    except QuantityError as error:
        return error.problem
    if quantity.sign() < 0:
        return "must be greater than or equal to 0"
    if _capped(amount, quantity) or too_large(name, quantity):
        return "is too large: it does not fit 64 bits"
    return None


def _capped(amount: Amount, quantity: Quantity) -> bool:
    """Cap a binary amount at the largest int64, as Go's parser does without an error."""
    return quantity.unscaled == _INT64_MOST and str(amount).strip() not in (str(_INT64_MOST), "")


def settle_amounts(amounts: Object) -> None:
    """Write numbers as texts (`cpu: 2` is `"2"`), as Kubernetes does; unreadable ones are left."""
    for name, amount in amounts.items():
        if not isinstance(amount, str):
            try:
                amounts[name] = quantity_of(amount).canonical()
            except QuantityError:
                continue


def amount_problems(amounts: Object, path: str) -> list[Cause]:
    """Return the problems of a mapping of resource names to amounts."""
    if len(amounts) > MOST_RESOURCES:
        return [too_many(path, len(amounts), MOST_RESOURCES)]
    found: list[Cause] = []
    for name, amount in amounts.items():
        if problem := qualified_name_problem(name):
            found.append(invalid_value(f"{path}[{name}]", name, problem))
        if problem := amount_problem(name, amount):
            found.append(invalid_value(f"{path}[{name}]", amount, problem))
    return found


def exceeds(left: Amount, right: Amount) -> bool:
    """Return whether left > right, exactly; False when a side is unreadable."""
    try:
        return quantity_of(left).compare(quantity_of(right)) > 0
    except QuantityError:
        return False


def quantity_total_too_large(name: str, amounts: list[Amount]) -> bool:
    """Return whether the sum of the readable amounts does not fit 64 bits."""
    try:
        total = quantity_of(0)
        for amount in amounts:
            total = total.plus(quantity_of(amount))
    except QuantityError:
        return False
    return too_large(name, total)


# --- Kinds with only their stated amounts checked: quotas, volumes and claims

_PLACES: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "ResourceQuota": (("spec", "hard"), ("status", "hard"), ("status", "used")),
    "PersistentVolume": (("spec", "capacity"),),
    "PersistentVolumeClaim": (("spec", "resources", "requests"),),
}


def _problems(places: tuple[tuple[str, ...], ...], obj: Object, _lookup: Lookup) -> list[Cause]:
    return [cause for place in places for cause in amount_problems(_at(obj, place), ".".join(place))]


def _at(obj: Object, place: tuple[str, ...]) -> Object:
    for name in place:
        obj = section(obj, name)
    return obj


def _update_problems(places: tuple[tuple[str, ...], ...], _old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    return _problems(places, new, lookup)


STATED: Final[dict[str, Admission]] = {
    kind: Admission(validate=partial(_problems, places), validate_update=partial(_update_problems, places))
    for kind, places in _PLACES.items()
}
"""Their rows of the admission table."""
