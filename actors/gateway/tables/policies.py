"""Budgets, quotas, priorities, leases: what limits others."""

from __future__ import annotations

from typing import Any, Final

from actors.gateway.tables.ages import age
from actors.gateway.tables.column import AGE, NAME, Printer, flag, number, text
from actors.gateway.tables.words import count, name_of, quantity, spec_of, status_of
from core.objects.metadata import Object, section


def _budget(obj: Object, now: float) -> list[Any]:
    spec = spec_of(obj)
    limits = ["N/A" if spec.get(field) is None else str(spec[field]) for field in ("minAvailable", "maxUnavailable")]
    return [name_of(obj), *limits, count(status_of(obj), "disruptionsAllowed"), age(obj, now)]


def _quota(obj: Object, now: float) -> list[Any]:
    status = status_of(obj)
    used = section(status, "used")
    told: dict[bool, list[str]] = {False: [], True: []}
    for resource, hard in sorted(section(status, "hard").items()):
        limit = resource.startswith("limits.")
        told[limit].append(f"{resource}: {quantity(used.get(resource))}/{quantity(hard)}")
    return [name_of(obj), ", ".join(told[False]), ", ".join(told[True]), age(obj, now)]


def _priority_class(obj: Object, now: float) -> list[Any]:
    default = bool(obj.get("globalDefault"))
    return [name_of(obj), count(obj, "value"), default, age(obj, now), obj.get("preemptionPolicy") or ""]


def _lease(obj: Object, now: float) -> list[Any]:
    return [name_of(obj), spec_of(obj).get("holderIdentity") or "", age(obj, now)]


BUDGETS: Final = Printer(
    (
        NAME,
        text("Min Available", "The fewest pods that must be there."),
        text("Max Unavailable", "The most pods that may be missing."),
        number("Allowed Disruptions", "Pods that may be evicted now."),
        AGE,
    ),
    _budget,
)

QUOTAS: Final = Printer(
    (NAME, text("Request", "Requests: used/hard."), text("Limit", "Limits: used/hard."), AGE), _quota
)

PRIORITY_CLASSES: Final = Printer(
    (
        NAME,
        number("Value", "The priority of its pods."),
        flag("Global-Default", "Whether pods without a class get this one."),
        AGE,
        text("PreemptionPolicy", "Whether its pods may preempt others."),
    ),
    _priority_class,
)

LEASES: Final = Printer((NAME, text("Holder", "Who holds it."), AGE), _lease)
