# SPDX-License-Identifier: Apache-2.0
"""ValidatingAdmissionPolicies and their bindings (source: validation of Kubernetes' admissionregistration).

What cannot be worked out is refused here, so that a policy that is there is one that is obeyed
(`actors/gateway/webhooks/admission.py`).
"""

from __future__ import annotations

import re
from typing import Any, Final

from pumice.cluster.api.admission.match_rules import (
    condition_problems,
    default_matching,
    expression_problems,
    mappings,
    match_problems,
)
from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.names import qualified_name_problem
from pumice.cluster.api.refusals import Cause, duplicate, invalid_value, required, unsupported
from pumice.cluster.api.schema.table import enum_of
from pumice.core.kube.cel.checking import Scope, check
from pumice.core.kube.cel.reading import ExpressionError
from pumice.core.kube.cel.scopes import of_request
from pumice.core.kube.cel.types import BOOL, DYN, NULL, STRING, CelType
from pumice.core.objects.metadata import Object, section

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_MOST_ANNOTATIONS: Final = 20
_RULES: Final = ("resourceRules", "excludeResourceRules")
_POLICIES: Final = enum_of("admissionregistration.v1.ValidatingAdmissionPolicySpec", "failurePolicy")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_NOTHING: Final = "validations or auditAnnotations must contain at least one item"


def default(policy: Object, _lookup: Lookup) -> None:
    """Fill in the fields that Kubernetes writes into a policy."""
    spec = policy.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    if spec.get("matchConstraints"):
        default_matching(spec["matchConstraints"], _RULES)


def default_binding(binding: Object, _lookup: Lookup) -> None:
    """Fill in the fields that Kubernetes writes into a binding."""
    matched = section(section(binding, "spec"), "matchResources")
    if matched:
        default_matching(matched, _RULES)


def validate(policy: Object, _lookup: Lookup) -> list[Cause]:
    """Return all problems of a new policy."""
    spec = section(policy, "spec")
    found: list[Cause] = []
    if spec.get("failurePolicy") not in _POLICIES:
        found.append(unsupported("spec.failurePolicy", spec.get("failurePolicy"), _POLICIES))
    if not spec.get("matchConstraints"):
        found.append(required("spec.matchConstraints"))
    elif not mappings(section(spec, "matchConstraints"), "resourceRules"):
        found.append(required("spec.matchConstraints.resourceRules"))
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        found += [required(f"spec.{part}", _NOTHING) for part in ("validations", "auditAnnotations")]
    elif not found:
        found += match_problems(section(spec, "matchConstraints"), "spec.matchConstraints")
    return found + _expression_problems(spec, policy["metadata"]["name"])


def validate_update(_old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed policy; the rules are those of a new one."""
    default(new, lookup)
    return validate(new, lookup)


def _expression_problems(spec: Object, policy: str) -> list[Cause]:
    """Return what is wrong with the expressions of a policy. A variable knows those before it."""
    params = bool(spec.get("paramKind"))
    scope = of_request(params=params)
    found = condition_problems(mappings(spec, "matchConditions"), "spec.matchConditions", scope)
    variables: dict[str, CelType] = {}
    for place, each in enumerate(mappings(spec, "variables")):
        path, scope = f"spec.variables[{place}]", of_request(params=params, variables=variables)
        name = str(each.get("name") or "")
        if not name.strip():
            found.append(required(f"{path}.name", "name is not specified"))
        elif not _IDENTIFIER.fullmatch(name):
            found.append(invalid_value(f"{path}.name", name, "must be a valid CEL identifier"))
        found += expression_problems(each, path, scope, "expression")
        variables = {**variables, name: _type_of(str(each.get("expression") or ""), scope)}
    composed = of_request(params=params, variables=variables)
    messages = of_request(params=params, authorizer=False, variables=variables)
    for place, each in enumerate(mappings(spec, "validations")):
        path = f"spec.validations[{place}]"
        found += expression_problems(each, path, composed, "expression", BOOL)
        if each.get("messageExpression"):
            found += expression_problems(each, path, messages, "messageExpression", STRING)
        found += _message_problems(each, path)
    return found + _annotation_problems(mappings(spec, "auditAnnotations"), composed, policy)


def _message_problems(validation: Object, path: str) -> list[Cause]:
    message, reason = str(validation.get("message") or ""), validation.get("reason")
    found: list[Cause] = []
    if message and not message.strip():
        found.append(invalid_value(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip() or "\r" in message.strip():
        found.append(invalid_value(f"{path}.message", message, "must not contain line breaks"))
    if reason not in (None, *_REASONS):
        found.append(unsupported(f"{path}.reason", reason, _REASONS))
    return found


def _annotation_problems(annotations: list[Object], scope: Scope, policy: str) -> list[Cause]:
    found: list[Cause] = []
    if len(annotations) > _MOST_ANNOTATIONS:
        why = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
        found.append(invalid_value("spec.auditAnnotations", f"{len(annotations)} items", why))
    seen: set[str] = set()
    for place, each in enumerate(annotations):
        path, key = f"spec.auditAnnotations[{place}]", str(each.get("key") or "")
        if problem := qualified_name_problem(f"{policy}/{key}"):
            found.append(invalid_value(f"{path}.key", f"{policy}/{key}", problem))
        elif key in seen:
            found.append(duplicate(f"{path}.key", key))
        seen.add(key)
        found += expression_problems(each, path, scope, "valueExpression", STRING, NULL)
    return found


def _type_of(text: str, scope: Scope) -> CelType:
    try:
        return check(text, scope).kind
    except ExpressionError:
        return DYN


def validate_binding(binding: Object, _lookup: Lookup) -> list[Cause]:
    """Return all problems of a new binding."""
    spec = section(binding, "spec")
    actions: list[Any] = spec.get("validationActions") or []
    found = [] if spec.get("policyName") else [required("spec.policyName")]
    if not actions:
        found.append(required("spec.validationActions", "at least one validation action is required"))
    for place, action in enumerate(actions):
        if action not in _ACTIONS:
            found.append(unsupported(f"spec.validationActions[{place}]", action, _ACTIONS))
    if "Deny" in actions and "Warn" in actions:
        found.append(invalid_value("spec.validationActions", actions, "must not contain both Deny and Warn"))
    if matched := section(spec, "matchResources"):
        found += match_problems(matched, "spec.matchResources")
    return found


def validate_binding_update(_old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed binding; the rules are those of a new one."""
    default_binding(new, lookup)
    return validate_binding(new, lookup)
