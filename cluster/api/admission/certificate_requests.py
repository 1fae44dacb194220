# SPDX-License-Identifier: Apache-2.0
"""CertificateSigningRequests: their valid content, and the writers of each part of the status (`apis/certificates`).

Whether the signature of a request is good is not looked at: no signer runs here.
"""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any, Final

from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.names import label_problem, subdomain_problem
from pumice.cluster.api.refusals import Cause, duplicate, forbidden_field, invalid_value, required, unsupported
from pumice.cluster.kube.statuses import GROUPS, USER
from pumice.core.objects.metadata import Object, rows, section

USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
LEGACY: Final = "kubernetes.io/legacy-unknown"
SHORTEST_S: Final = 600
DECISIONS: Final = ("Approved", "Denied")
FINAL: Final = (*DECISIONS, "Failed")
_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE REQUEST-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE REQUEST-----")
_SEQUENCE: Final = 0x30


def initial_status(request: Object) -> None:
    """Reset the status: a new request is undecided, even if its author says otherwise."""
    request["status"] = {}


def default(request: Object, _lookup: Lookup) -> None:
    """Fill in the user who makes the request."""
    spec: Object = request.setdefault("spec", {})
    # the gateway has written the sender there, whatever a client said: approvers decide by it
    if "username" not in spec:
        spec |= {"username": USER, "groups": list(GROUPS)}


def validate(request: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a new CertificateSigningRequest."""
    spec = section(request, "spec")
    usages: list[Any] = spec.get("usages") or []
    found = _request_problems(spec.get("request") or "")
    if not usages:
        found.append(required("spec.usages"))
    for index, usage in enumerate(usages):
        if usage not in USAGES:
            found.append(unsupported(f"spec.usages[{index}]", usage, USAGES))
        elif usage in usages[:index]:
            found.append(duplicate(f"spec.usages[{index}]", usage))
    found += _signer_problems(spec.get("signerName") or "")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < SHORTEST_S:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        found.append(invalid_value("spec.expirationSeconds", seconds, why))
    return found


def validate_update(old: Object, new: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed request; the spec is immutable."""
    # taken back without a refusal, as `csrStrategy.PrepareForUpdate` does
    new["spec"] = old.get("spec") or {}
    return []


def approve(old: Object, given: Object, at: str) -> tuple[Object, list[Cause]]:
    """Return the request with the conditions of `given`: a write under `approval` is a decision."""
    conditions = _dated(rows(section(given, "status"), "conditions"), section(old, "status"), at)
    new = _with_status(old, given, {**section(old, "status"), "conditions": conditions})
    return new, _condition_problems(old, new)


def report(old: Object, given: Object, at: str) -> tuple[Object, list[Cause]]:
    """Return the request with the status of `given`. A write of the status signs or fails the request; it cannot
    decide.
    """
    status = {**section(given, "status")}
    before = section(old, "status")
    status["conditions"] = _dated(rows(status, "conditions"), before, at)
    new = _with_status(old, given, status)
    found = _condition_problems(old, new)
    for kind in DECISIONS:
        if _count(new, kind) > _count(old, kind):
            found.append(forbidden_field("status.conditions", f'updates may not add a condition of type "{kind}"'))
    certificate = before.get("certificate")
    if certificate and status.get("certificate") != certificate:
        why = "updates may not modify existing certificate content"
        found.append(forbidden_field("status.certificate", why))
    return new, found


def _with_status(old: Object, given: Object, status: Object) -> Object:
    if not status.get("conditions"):
        status.pop("conditions", None)
    return {**old, "metadata": dict(given["metadata"]), "status": status}


def _dated(conditions: list[Object], before: Object, at: str) -> list[Object]:
    """Fill in missing times; a decision keeps its time."""
    known = {(each.get("type"), each.get("status")): each for each in rows(before, "conditions")}
    dated: list[Object] = []
    for each in conditions:
        was = known.get((each.get("type"), each.get("status")), {})
        since = was.get("lastTransitionTime") or at
        times = {"lastUpdateTime": each.get("lastUpdateTime") or at}
        times["lastTransitionTime"] = each.get("lastTransitionTime") or since
        dated.append({**each, **times})
    return dated


def _condition_problems(old: Object, new: Object) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for index, each in enumerate(rows(section(new, "status"), "conditions")):
        path, kind, status = f"status.conditions[{index}]", each.get("type") or "", each.get("status") or ""
        known = ("True",) if kind in FINAL else ("False", "True", "Unknown")
        if not kind:
            found.append(required(f"{path}.type"))
        if kind in seen:
            found.append(duplicate(f"{path}.type", kind))
        if status not in known:
            found.append(unsupported(f"{path}.status", status, known) if status else required(f"{path}.status"))
        seen.add(kind)
    if seen.issuperset(DECISIONS):
        why = "Approved and Denied conditions are mutually exclusive"
        found.append(invalid_value("status.conditions", "Denied", why))
    lost = [kind for kind in FINAL if _count(new, kind) < _count(old, kind)]
    words = [f'updates may not remove a condition of type "{kind}"' for kind in lost]
    return found + [forbidden_field("status.conditions", each) for each in words]


def _count(request: Object, kind: str) -> int:
    return sum(each.get("type") == kind for each in rows(section(request, "status"), "conditions"))


def _request_problems(text: str) -> list[Cause]:
    if not text:
        return [required("spec.request")]
    try:
        # latin-1 decodes any byte: a request that is not PEM is refused below, with its own message
        match = _PEM.search(b64decode(text).decode("latin-1"))
        if match is None:
            return [invalid_value("spec.request", text[:64], "PEM block type must be CERTIFICATE REQUEST")]
        if not _is_sequence(b64decode(match[1])):
            raise ValueError
    except ValueError:
        return [invalid_value("spec.request", text[:64], "the PEM block holds no certificate request")]
    return []


def _is_sequence(data: bytes) -> bool:
    """Return whether the bytes are exactly one DER sequence."""
    if len(data) < 2 or data[0] != _SEQUENCE:
        return False
    if data[1] < 0x80:
        return len(data) == 2 + data[1]
    size = data[1] & 0x7F
    return len(data) == 2 + size + int.from_bytes(data[2 : 2 + size])


def _signer_problems(name: str) -> list[Cause]:
    domain, slash, path = name.partition("/")
    if not name:
        return [required("spec.signerName")]
    if name == LEGACY:
        why = "the legacy signerName is not allowed via this API version"
        return [invalid_value("spec.signerName", name, why)]
    if not slash or "/" in path:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid_value("spec.signerName", name, why)]
    if "." not in domain:
        return [invalid_value("spec.signerName", domain, "should be a domain with at least two segments")]
    problem = next(filter(None, map(label_problem, domain.split("."))), "") or subdomain_problem(path)
    return [invalid_value("spec.signerName", name, problem)] if problem else []
