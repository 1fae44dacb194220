"""ValidatingAdmissionPolicies and their bindings (source: validation of Kubernetes' admissionregistration).

What cannot be worked out is refused here, so that a policy that is there is one that is obeyed
(`actors/gateway/webhooks/policies.py`). The types in an expression are not checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from actors.api.admission.rules import Lookup
from actors.api.fields import rows, section
from actors.api.refusals import Cause, invalid_value, required, unsupported
from core.kube.cel.checking import compile_problem
from core.objects.metadata import Object

NAMES: Final = ("object", "oldObject", "request", "params", "namespaceObject")
"""What every expression of a policy may speak of."""
_POLICIES: Final = ("Fail", "Ignore")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_NOTHING: Final = "validations or auditAnnotations must contain at least one item"


def default(policy: Object, lookup: Lookup) -> None:
    """What Kubernetes writes into one."""
    del lookup
    spec = policy.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    if spec.get("matchConstraints"):
        _default_match(spec["matchConstraints"])


def default_binding(binding: Object, lookup: Lookup) -> None:
    """What Kubernetes writes into one."""
    del lookup
    matched = section(section(binding, "spec"), "matchResources")
    if matched:
        _default_match(matched)


def _default_match(matched: dict[str, Any]) -> None:
    matched.setdefault("matchPolicy", "Equivalent")
    for part in ("namespaceSelector", "objectSelector"):
        matched.setdefault(part, {})
    for rule in (*rows(matched, "resourceRules"), *rows(matched, "excludeResourceRules")):
        rule.setdefault("scope", "*")


def validate(policy: Object, lookup: Lookup) -> list[Cause]:
    """Everything about a new one."""
    del lookup
    spec = section(policy, "spec")
    found: list[Cause] = []
    if spec.get("failurePolicy") not in _POLICIES:
        found.append(unsupported("spec.failurePolicy", spec.get("failurePolicy"), _POLICIES))
    if not spec.get("matchConstraints"):
        found.append(required("spec.matchConstraints"))
    elif not rows(section(spec, "matchConstraints"), "resourceRules"):
        found.append(required("spec.matchConstraints.resourceRules"))
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        found += [required(f"spec.{part}", _NOTHING) for part in ("validations", "auditAnnotations")]
    return found + _expression_problems(spec)


def validate_update(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """What is wrong with a policy after a change: a new one is asked the same."""
    del old
    default(new, lookup)
    return validate(new, lookup)


def _expression_problems(spec: dict[str, Any]) -> list[Cause]:
    found = _problems(rows(spec, "matchConditions"), "spec.matchConditions", NAMES)
    names = (*NAMES, "variables")
    found += _problems(rows(spec, "variables"), "spec.variables", names)
    found += _problems(rows(spec, "validations"), "spec.validations", names)
    found += _problems(rows(spec, "validations"), "spec.validations", names, "messageExpression")
    return found + _problems(rows(spec, "auditAnnotations"), "spec.auditAnnotations", names, "valueExpression")


def _problems(listed: Iterable[Object], path: str, names: tuple[str, ...], part: str = "expression") -> list[Cause]:
    found: list[Cause] = []
    for place, each in enumerate(listed):
        where, text = f"{path}[{place}].{part}", each.get(part)
        if not text:
            if part != "messageExpression":
                found.append(required(where, f"{part} is not specified"))
        elif why := compile_problem(str(text), names):
            found.append(invalid_value(where, text, why))
    return found


def validate_binding(binding: Object, lookup: Lookup) -> list[Cause]:
    """Everything about a new one."""
    del lookup
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
    return found


def validate_binding_update(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """What is wrong with a binding after a change: a new one is asked the same."""
    del old
    default_binding(new, lookup)
    return validate_binding(new, lookup)
