# SPDX-License-Identifier: Apache-2.0
"""PodDisruptionBudgets: one amount, of pods or in percent, and a selector that can be read."""

from __future__ import annotations

from typing import Final

from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.refusals import Cause, invalid_value
from pumice.core.kube.selectors import SelectorError, label_selector
from pumice.core.objects.metadata import Object, section

_AMOUNTS: Final = ("minAvailable", "maxUnavailable")


def validate(budget: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a new budget: two amounts instead of one, an amount or a selector that is not valid."""
    spec = section(budget, "spec")
    found: list[Cause] = []
    given = [name for name in _AMOUNTS if spec.get(name) is not None]
    if len(given) > 1:
        found.append(invalid_value("spec", given, "minAvailable and maxUnavailable cannot be both set"))
    problems = [(name, _problem(spec[name])) for name in given]
    found += [invalid_value(f"spec.{name}", spec[name], problem) for name, problem in problems if problem]
    try:
        label_selector(spec.get("selector"))
    except SelectorError as error:
        found.append(invalid_value("spec.selector", spec.get("selector"), str(error)))
    return found


def validate_update(_old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed budget; the rules are those of a new one."""
    return validate(new, lookup)


def _problem(amount: int | str) -> str | None:
    if isinstance(amount, int):
        return "must be greater than or equal to 0" if amount < 0 else None
    digits = amount.removesuffix("%")
    if digits == amount or not (digits.isascii() and digits.isdigit()):
        return "a valid percent string must be a numeric string followed by an ending '%'"
    return "must not be greater than 100%" if int(digits[:9]) > 100 else None
