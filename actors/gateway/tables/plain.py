"""Kinds of which little is shown: configuration, accounts, roles, devices."""

from __future__ import annotations

from typing import Any, Final

from pumice.actors.gateway.tables.ages import age
from pumice.actors.gateway.tables.column import AGE, NAME, NONE, Printer, TableColumn, number, text
from pumice.actors.gateway.tables.words import count, deleted, name_of, quantity, spec_of, status_of
from pumice.cluster.api.fields import rows
from pumice.core.objects.metadata import Object, section
from pumice.core.quantity import quantity_of


def _aged(obj: Object, now: float) -> list[Any]:
    return [name_of(obj), age(obj, now)]


def _created(obj: Object, now: float) -> list[Any]:
    return [name_of(obj), section(obj, "metadata").get("creationTimestamp")]


def _config_map(obj: Object, now: float) -> list[Any]:
    return [name_of(obj), len(section(obj, "data")) + len(section(obj, "binaryData")), age(obj, now)]


def _secret(obj: Object, now: float) -> list[Any]:
    return [name_of(obj), obj.get("type") or "Opaque", len(section(obj, "data")), age(obj, now)]


def _binding(obj: Object, now: float) -> list[Any]:
    role = section(obj, "roleRef")
    named: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in rows(obj, "subjects"):
        prefix = f"{subject.get('namespace') or ''}/" if subject.get("kind") == "ServiceAccount" else ""
        named.get(str(subject.get("kind")), []).append(f"{prefix}{subject.get('name', '')}")
    reference = f"{role.get('kind', '')}/{role.get('name', '')}"
    return [name_of(obj), reference, age(obj, now), *(", ".join(names) for names in named.values())]


def _revision(obj: Object, now: float) -> list[Any]:
    owner = next((one for one in rows(section(obj, "metadata"), "ownerReferences") if one.get("controller")), None)
    told = NONE
    if owner:
        group, slash, _ = str(owner.get("apiVersion", "")).partition("/")
        suffix = f".{group}" if slash else ""
        told = f"{owner.get('kind', '')}{suffix}".lower() + f"/{owner.get('name', '')}"
    return [name_of(obj), told, count(obj, "revision"), age(obj, now)]


def _resource_claim(obj: Object, now: float) -> list[Any]:
    status, going = status_of(obj), deleted(obj)
    allocated = status.get("allocation") is not None
    states = [
        word
        for word, holds in (
            ("deleted", going),
            ("pending", not allocated and not going),
            ("allocated", allocated),
            ("reserved", allocated and bool(status.get("reservedFor"))),
        )
        if holds
    ]
    return [name_of(obj), ",".join(states), age(obj, now)]


def _resource_slice(obj: Object, now: float) -> list[Any]:
    spec = spec_of(obj)
    pool = section(spec, "pool").get("name") or ""
    return [name_of(obj), spec.get("nodeName") or "", spec.get("driver") or "", pool, age(obj, now)]


def _scale(obj: Object, now: float) -> list[Any]:
    return [name_of(obj), count(spec_of(obj), "replicas"), count(status_of(obj), "replicas"), age(obj, now)]


def _usage(obj: Object, now: float) -> list[Any]:
    used = section(obj, "usage")
    if not used:
        return [name_of(obj), *_sum(rows(obj, "containers")), obj.get("window") or ""]
    return [name_of(obj), quantity(used.get("cpu")), quantity(used.get("memory")), obj.get("window") or ""]


def _sum(containers: list[Object]) -> list[str]:
    """A pod's usage: exact sums over its containers."""
    return [_total([section(one, "usage").get(resource) for one in containers]) for resource in ("cpu", "memory")]


def _total(amounts: list[object]) -> str:
    total = quantity_of(0)
    for amount in amounts:
        total = total.plus(quantity_of(amount or 0))
    return total.canonical()


def _status(obj: Object, now: float) -> list[Any]:
    return [obj.get("status") or "", obj.get("reason") or "", obj.get("message") or ""]


AGED: Final = Printer((NAME, AGE), _aged)
CREATED: Final = Printer((NAME, TableColumn("Created At", "date", description="When it was created.")), _created)
CONFIG_MAPS: Final = Printer((NAME, text("Data", "How many keys it has."), AGE), _config_map)
SECRETS: Final = Printer((NAME, text("Type", "What it is for."), text("Data", "How many keys it has."), AGE), _secret)

BINDINGS: Final = Printer(
    (
        NAME,
        text("Role", "The role given."),
        AGE,
        text("Users", "To which users.", wide=True),
        text("Groups", "To which groups.", wide=True),
        text("ServiceAccounts", "To which service accounts.", wide=True),
    ),
    _binding,
)

REVISIONS: Final = Printer(
    (NAME, text("Controller", "Whose revision it is."), text("Revision", "Its number."), AGE), _revision
)

RESOURCE_CLAIMS: Final = Printer((NAME, text("State", "pending, allocated, reserved."), AGE), _resource_claim)

RESOURCE_SLICES: Final = Printer(
    (
        NAME,
        text("Node", "Whose devices they are."),
        text("Driver", "Who manages them."),
        text("Pool", "The pool they are of."),
        AGE,
    ),
    _resource_slice,
)

SCALES: Final = Printer(
    (TableColumn("Name"), number("Desired", "Pods wanted."), number("Available", "Pods there."), AGE), _scale
)

USAGES: Final = Printer(
    (NAME, text("cpu", "Processor time used."), text("memory", "Memory used."), text("Window", "Over which time.")),
    _usage,
)

STATUSES: Final = Printer((text("Status"), text("Reason"), text("Message")), _status)
