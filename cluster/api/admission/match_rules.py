# SPDX-License-Identifier: Apache-2.0
"""The rules, selectors and conditions by which a webhook or a policy chooses its requests.

Source: validation of Kubernetes' admissionregistration.
"""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api.names import label_value_problem, qualified_name_problem
from pumice.cluster.api.refusals import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    too_many,
    unsupported,
)
from pumice.cluster.api.schema.table import enum_of
from pumice.core.kube.cel.checking import Scope, compile_problem
from pumice.core.kube.cel.types import BOOL, CelType
from pumice.core.objects.metadata import Object, is_list, is_mapping, section

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = enum_of("admissionregistration.v1.Rule", "scope")
_MATCH_POLICIES: Final = enum_of("admissionregistration.v1.MatchResources", "matchPolicy")
_NEEDS_VALUES: Final = ("In", "NotIn")
_NEEDS_NONE: Final = ("Exists", "DoesNotExist")
# The API reference of `matchConditions` states this bound.
_MOST_CONDITIONS: Final = 64
_NOT_IN_PATHS: Final = ("/", "%")


def mappings(holder: Object, name: str) -> list[Object]:
    """Return the mappings of a list, which what a run begins with may not be."""
    listed: Any = holder.get(name)
    return [each for each in listed if is_mapping(each)] if is_list(listed) else []


def texts(holder: Object, name: str) -> list[str]:
    """Return the strings of a list."""
    listed: Any = holder.get(name)
    return [str(each) for each in listed] if is_list(listed) else []


def default_matching(holder: Object, rules: tuple[str, ...]) -> None:
    """Write what Kubernetes does into what holds rules under these names."""
    holder.setdefault("matchPolicy", "Equivalent")
    for part in ("namespaceSelector", "objectSelector"):
        holder.setdefault(part, {})
    for name in rules:
        for rule in mappings(holder, name):
            rule.setdefault("scope", "*")


def match_problems(matched: Object, path: str) -> list[Cause]:
    """Return the problems of the resources that a policy or a binding matches."""
    found = policy_problems(matched, path)
    for part in ("resourceRules", "excludeResourceRules"):
        for place, rule in enumerate(mappings(matched, part)):
            where = f"{path}.{part}[{place}]"
            found += _name_problems(texts(rule, "resourceNames"), f"{where}.resourceNames")
            found += rule_problems(rule, where)
    return found


def policy_problems(holder: Object, path: str) -> list[Cause]:
    """Return the problems of a match policy and the selectors beside it."""
    found: list[Cause] = []
    if holder.get("matchPolicy") not in _MATCH_POLICIES:
        found.append(unsupported(f"{path}.matchPolicy", holder.get("matchPolicy"), _MATCH_POLICIES))
    for part in ("namespaceSelector", "objectSelector"):
        found += selector_problems(section(holder, part), f"{path}.{part}")
    return found


def _name_problems(names: list[str], path: str) -> list[Cause]:
    found: list[Cause] = []
    for place, name in enumerate(names):
        if name in (".", "..") or any(each in name for each in _NOT_IN_PATHS):
            found.append(invalid_value(f"{path}[{place}]", name, "may not be '.' or '..', or contain '/' or '%'"))
        elif name in names[:place]:
            found.append(duplicate(f"{path}[{place}]", name))
    return found


def rule_problems(rule: Object, path: str) -> list[Cause]:
    """Return the problems of a rule: operations, groups, versions, resources and scope."""
    operations = texts(rule, "operations")
    found = _wildcard_problems(operations, f"{path}.operations", "operations")
    for place, each in enumerate(operations):
        if each not in _OPERATIONS:
            found.append(unsupported(f"{path}.operations[{place}]", each, _OPERATIONS))
    found += _wildcard_problems(texts(rule, "apiGroups"), f"{path}.apiGroups", "API groups")
    found += _wildcard_problems(texts(rule, "apiVersions"), f"{path}.apiVersions", "API versions")
    for place, version in enumerate(texts(rule, "apiVersions")):
        if not version:
            found.append(required(f"{path}.apiVersions[{place}]"))
    found += _resource_problems(texts(rule, "resources"), f"{path}.resources")
    if rule.get("scope") not in (None, *_SCOPES):
        found.append(unsupported(f"{path}.scope", rule["scope"], _SCOPES))
    return found


def _wildcard_problems(listed: list[str], path: str, what: str) -> list[Cause]:
    if not listed:
        return [required(path)]
    if len(listed) > 1 and "*" in listed:
        return [invalid_value(path, listed, f"if '*' is present, must not specify other {what}")]
    return []


def _resource_problems(resources: list[str], path: str) -> list[Cause]:
    found = [] if resources else [required(path)]
    plain = False
    for place, each in enumerate(resources):
        resource, slash, sub = each.partition("/")
        if not each:
            found.append(required(f"{path}[{place}]"))
        elif not slash:
            plain = each != "*"  # the last one counts, as in Kubernetes
        elif f"{resource}/*" in resources[:place]:
            why = f"if '{resource}/*' is present, must not specify {each}"
            found.append(invalid_value(f"{path}[{place}]", each, why))
        elif f"*/{sub}" in resources[:place]:
            found.append(invalid_value(f"{path}[{place}]", each, f"if '*/{sub}' is present, must not specify {each}"))
    if len(resources) > 1 and "*/*" in resources:
        found.append(invalid_value(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and plain:
        why = "if '*' is present, must not specify other resources without subresources"
        found.append(invalid_value(path, resources, why))
    return found


def selector_problems(selector: Object, path: str) -> list[Cause]:
    """Return the problems of a label selector."""
    found: list[Cause] = []
    for key, value in section(selector, "matchLabels").items():
        if problem := qualified_name_problem(str(key)):
            found.append(invalid_value(f"{path}.matchLabels", key, problem))
        if problem := label_value_problem(str(value)):
            found.append(invalid_value(f"{path}.matchLabels", value, problem))
    for place, each in enumerate(mappings(selector, "matchExpressions")):
        found += _requirement_problems(each, f"{path}.matchExpressions[{place}]")
    return found


def _requirement_problems(requirement: Object, path: str) -> list[Cause]:
    operator, values, key = requirement.get("operator"), texts(requirement, "values"), str(requirement.get("key") or "")
    found: list[Cause] = []
    if operator in _NEEDS_VALUES and not values:
        found.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in _NEEDS_NONE and values:
        why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        found.append(forbidden_field(f"{path}.values", why))
    elif operator not in (*_NEEDS_VALUES, *_NEEDS_NONE):
        found.append(invalid_value(f"{path}.operator", operator, "not a valid selector operator"))
    if problem := qualified_name_problem(key):
        found.append(invalid_value(f"{path}.key", key, problem))
    for place, value in enumerate(values):
        if problem := label_value_problem(value):
            found.append(invalid_value(f"{path}.values[{place}]", value, problem))
    return found


def condition_problems(conditions: list[Object], path: str, scope: Scope) -> list[Cause]:
    """Return the problems of the conditions under which a policy or a webhook is called."""
    found: list[Cause] = []
    if len(conditions) > _MOST_CONDITIONS:
        found.append(too_many(path, len(conditions), _MOST_CONDITIONS))
    seen: set[str] = set()
    for place, each in enumerate(conditions):
        where, name = f"{path}[{place}]", str(each.get("name") or "")
        found += expression_problems(each, where, scope, "expression", BOOL)
        if not name:
            found.append(required(f"{where}.name"))
        elif problem := qualified_name_problem(name):
            found.append(invalid_value(f"{where}.name", name, problem))
        elif name in seen:
            found.append(duplicate(f"{where}.name", name))
        seen.add(name)
    return found


def expression_problems(holder: Object, path: str, scope: Scope, part: str, *results: CelType) -> list[Cause]:
    """Return the problems of the expression under a name, which must evaluate to one of these types."""
    where, text = f"{path}.{part}", holder.get(part)
    if not isinstance(text, str) or not text.strip():
        return [required(where, f"{part} is not specified")]
    why = compile_problem(text, scope, *results)
    return [invalid_value(where, text, why)] if why else []
