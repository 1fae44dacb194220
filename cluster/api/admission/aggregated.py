# SPDX-License-Identifier: Apache-2.0
"""APIServices: stored as they are, and available only where they name no other server.

Requests are not passed on to other API servers here: what such a server offers is not found, and its APIService says
so, as it does in a cluster whose server is not up yet. Source: kube-aggregator's `pkg/apis/apiregistration/validation`.
"""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.names import old_label_problem, subdomain_problem
from pumice.cluster.api.refusals import Cause, invalid_value, required
from pumice.core.objects.metadata import Object, rows, section

WHY: Final = "requests are not passed on to other API servers here"
_RANGES: Final = (("groupPriorityMinimum", 20_000), ("versionPriority", 1_000))
_LOCAL: Final = ("True", "Local", "Local APIServices are always available")
_REMOTE: Final = ("False", "FailedDiscoveryCheck", WHY)


def default(api_service: Object, _lookup: Lookup) -> None:
    """Write what Kubernetes does into one."""
    service = section(section(api_service, "spec"), "service")
    if service:
        service.setdefault("port", 443)


def validate(api_service: Object, _lookup: Lookup) -> list[Cause]:
    """Return everything that is wrong with a new one."""
    spec, name = section(api_service, "spec"), api_service["metadata"]["name"]
    group, version = str(spec.get("group") or ""), str(spec.get("version") or "")
    found: list[Cause] = []
    if name != (wanted := f"{version}.{group}"):
        why = f'must be `spec.version+"."+spec.group`: "{wanted}"'
        found.append(invalid_value("metadata.name", name, why))
    if group and (problem := subdomain_problem(group)):
        found.append(invalid_value("spec.group", group, problem))
    if problem := old_label_problem(version):
        found.append(invalid_value("spec.version", version, problem))
    for part, most in _RANGES:
        value: Any = spec.get(part)
        if not isinstance(value, int) or not 1 <= value <= most:
            found.append(invalid_value(f"spec.{part}", value, f"must be positive and no more than {most}"))
    return found + _service_problems(spec)


def _service_problems(spec: Object) -> list[Cause]:
    service, bundle, insecure = section(spec, "service"), spec.get("caBundle"), spec.get("insecureSkipTLSVerify")
    if not service:
        why = "local APIServices may not have"
        found = [invalid_value("spec.caBundle", "...", f"{why} a caBundle")] if bundle else []
        return found + ([invalid_value("spec.insecureSkipTLSVerify", True, f"{why} it")] if insecure else [])
    found = [required(f"spec.service.{part}") for part in ("namespace", "name") if not service.get(part)]
    if bundle and insecure:
        found.append(invalid_value("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present"))
    return found


def validate_update(_old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed APIService; the rules are those of a new one."""
    default(new, lookup)
    return validate(new, lookup)


def settle(api_service: Object, _lookup: Lookup, now: str) -> None:
    """Set the condition Available of the APIService, with its time."""
    remote = bool(section(section(api_service, "spec"), "service"))
    state, reason, message = _REMOTE if remote else _LOCAL
    status: Object = dict(section(api_service, "status"))
    before = next((each for each in rows(status, "conditions") if each.get("type") == "Available"), Object())
    since = before.get("lastTransitionTime") if before.get("status") == state else now
    others = [each for each in rows(status, "conditions") if each.get("type") != "Available"]
    said = {"type": "Available", "status": state, "lastTransitionTime": since, "reason": reason, "message": message}
    api_service["status"] = {**status, "conditions": [*others, said]}
