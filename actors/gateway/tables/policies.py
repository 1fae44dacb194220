"""Budgets, quotas, priorities, leases, requests for certificates: what limits others, or allows them something."""

from __future__ import annotations

from typing import Any, Final

from pumice.actors.gateway.tables.ages import age, human_duration
from pumice.actors.gateway.tables.column import AGE, NAME, NONE, Printer, flag, number, text
from pumice.actors.gateway.tables.words import count, name_of, quantity, spec_of, status_of
from pumice.core.objects.metadata import Object, section


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


def _certificate_request(obj: Object, now: float) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    said = {each.get("type") for each in status.get("conditions") or ()}
    words = ["Denied" if "Denied" in said else "Approved" if "Approved" in said else "Pending"]
    words += ["Failed"] * ("Failed" in said) + ["Issued"] * bool(status.get("certificate"))
    seconds = spec.get("expirationSeconds")
    lasts = human_duration(float(seconds)) if seconds is not None else NONE
    signer, who = spec.get("signerName") or NONE, spec.get("username") or ""
    return [name_of(obj), age(obj, now), signer, who, lasts, ",".join(words)]


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

CERTIFICATE_REQUESTS: Final = Printer(
    (
        NAME,
        AGE,
        text("SignerName", "Who is asked to sign."),
        text("Requestor", "Who asks."),
        text("RequestedDuration", "How long the certificate is to be good."),
        text("Condition", "What has been decided, and what has come of it."),
    ),
    _certificate_request,
)
