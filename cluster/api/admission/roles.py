# SPDX-License-Identifier: Apache-2.0
"""Roles, ClusterRoles and their bindings (source: Kubernetes' `pkg/apis/rbac/validation`)."""

from __future__ import annotations

from typing import Final

from pumice.cluster.api.admission.match_rules import mappings, selector_problems, texts
from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.names import path_segment_problem, subdomain_problem
from pumice.cluster.api.refusals import Cause, invalid_value, required, unsupported
from pumice.core.objects.metadata import Object, section

GROUP: Final = "rbac.authorization.k8s.io"
_IN_GROUP: Final = ("Group", "User")


def validate_role(role: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a Role or ClusterRole."""
    namespaced = bool(role["metadata"].get("namespace"))
    found: list[Cause] = []
    for place, rule in enumerate(mappings(role, "rules")):
        found += _rule_problems(rule, f"rules[{place}]", namespaced=namespaced)
    return found + _aggregation_problems(role)


def validate_role_update(_old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed role; the rules are those of a new one."""
    return validate_role(new, lookup)


def _rule_problems(rule: Object, path: str, *, namespaced: bool) -> list[Cause]:
    found = [] if texts(rule, "verbs") else [required(f"{path}.verbs", "verbs must contain at least one value")]
    urls = texts(rule, "nonResourceURLs")
    groups, resources, names = (texts(rule, name) for name in ("apiGroups", "resources", "resourceNames"))
    if urls:
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            found.append(invalid_value(f"{path}.nonResourceURLs", urls, why))
        if groups or resources or names:
            why = "rules cannot apply to both regular resources and non-resource URLs"
            found.append(invalid_value(f"{path}.nonResourceURLs", urls, why))
        return found
    if not groups:
        found.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not resources:
        found.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return found


def _aggregation_problems(role: Object) -> list[Cause]:
    if not role.get("aggregationRule"):
        return []
    selectors = mappings(section(role, "aggregationRule"), "clusterRoleSelectors")
    path = "aggregationRule.clusterRoleSelectors"
    if not selectors:
        return [required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")]
    return [each for place, one in enumerate(selectors) for each in selector_problems(one, f"{path}[{place}]")]


def default_binding(binding: Object, _lookup: Lookup) -> None:
    """Fill in the group of the role and of users and groups."""
    ref = binding.get("roleRef")
    if isinstance(ref, dict):
        section(binding, "roleRef").setdefault("apiGroup", GROUP)
    for subject in mappings(binding, "subjects"):
        if subject.get("kind") in _IN_GROUP and not subject.get("apiGroup"):
            subject["apiGroup"] = GROUP


def validate_binding(binding: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a RoleBinding or ClusterRoleBinding."""
    namespaced = bool(binding["metadata"].get("namespace"))
    ref = section(binding, "roleRef")
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    name = str(ref.get("name") or "")
    found: list[Cause] = []
    if ref.get("apiGroup") != GROUP:
        found.append(unsupported("roleRef.apiGroup", ref.get("apiGroup") or "", (GROUP,)))
    if ref.get("kind") not in kinds:
        found.append(unsupported("roleRef.kind", ref.get("kind") or "", kinds))
    if not name:
        found.append(required("roleRef.name"))
    elif problem := path_segment_problem(name):
        found.append(invalid_value("roleRef.name", name, problem))
    for place, subject in enumerate(mappings(binding, "subjects")):
        found += _subject_problems(subject, f"subjects[{place}]", namespaced=namespaced)
    return found


def _subject_problems(subject: Object, path: str, *, namespaced: bool) -> list[Cause]:
    kind, name, group = (str(subject.get(part) or "") for part in ("kind", "name", "apiGroup"))
    found = [] if name else [required(f"{path}.name")]
    if kind == "ServiceAccount":
        if name and (problem := subdomain_problem(name)):
            found.append(invalid_value(f"{path}.name", name, problem))
        if group:
            found.append(unsupported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            found.append(required(f"{path}.namespace"))
    elif kind in _IN_GROUP:
        if group != GROUP:
            found.append(unsupported(f"{path}.apiGroup", group, (GROUP,)))
    else:
        found.append(unsupported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
    return found


def validate_binding_update(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed binding, whose role stays the same."""
    default_binding(new, lookup)
    found = validate_binding(new, lookup)
    if section(old, "roleRef") != section(new, "roleRef"):
        found.append(invalid_value("roleRef", section(new, "roleRef"), "cannot change roleRef"))
    return found
