# SPDX-License-Identifier: Apache-2.0
"""PriorityClasses: a value up to 10⁹ that cannot change (source: Kubernetes' scheduling validation)."""

from __future__ import annotations

from typing import Final

from pumice.cluster.api.admission.pods import SYSTEM_CLASSES
from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.refusals import Cause, forbidden_field, invalid_value, unsupported
from pumice.cluster.api.schema.table import enum_of
from pumice.core.objects.metadata import Object

HIGHEST: Final = 1_000_000_000
LOWEST: Final = -(2**31)
_POLICIES: Final = enum_of("scheduling.v1.PriorityClass", "preemptionPolicy", declared=True)


def validate(priority_class: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a new class: the value's range, the policy, and at most one global default."""
    name: str = priority_class["metadata"]["name"]
    value: int = priority_class.setdefault("value", 0)
    found: list[Cause] = []
    if not LOWEST <= value <= HIGHEST and SYSTEM_CLASSES.get(name) != value:
        why = f"maximum allowed value of a user defined priority is {HIGHEST}"
        found.append(forbidden_field("value", why))
    if name.startswith("system-") and name not in SYSTEM_CLASSES:
        why = "names with 'system-' prefix are reserved for system use only"
        found.append(invalid_value("metadata.name", name, why))
    policy = priority_class.setdefault("preemptionPolicy", "PreemptLowerPriority")
    if policy not in _POLICIES:
        found.append(unsupported("preemptionPolicy", policy, _POLICIES))
    other = lookup.default_priority_class() if priority_class.get("globalDefault") else None
    if other is not None and other["metadata"]["name"] != name:
        why = f"PriorityClass {other['metadata']['name']} is already marked as default. Only one default can exist"
        found.append(forbidden_field("globalDefault", why))
    return found


def validate_update(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed class: value and policy are fixed, since admitted pods hold copies."""
    changed = [field for field in ("value", "preemptionPolicy") if new.get(field) != old.get(field)]
    return [forbidden_field(field, "may not be changed in an update.") for field in changed] or validate(new, lookup)
