# SPDX-License-Identifier: Apache-2.0
"""No user may hand out rights that it does not have, unless it may `escalate` a role or `bind` one.

Source: Kubernetes' `pkg/registry/rbac/validation` and `component-helpers/auth/rbac/validation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pumice.cluster.rbac.index import RoleIndex
from pumice.cluster.rbac.rules import (
    ANY,
    GROUP,
    MASTERS,
    AccessRequest,
    PolicyRule,
    User,
    quoted,
    rules_of,
    url_matches,
)
from pumice.core.objects.metadata import Object, section

EVERYTHING: Final = (
    PolicyRule(verbs=(ANY,), groups=(ANY,), resources=(ANY,)),
    PolicyRule(verbs=(ANY,), urls=(ANY,)),
)
"""Rights that a user needs to make a role with an aggregationRule."""
_PLURALS: Final = {"ClusterRole": "clusterroles", "Role": "roles"}


def escalation(index: RoleIndex, user: User, kind: str, new: Object, old: Object | None) -> str | None:
    """Return why the user may not write a role or binding like this; None when it may."""
    if MASTERS in user.groups:
        return None
    if kind in _PLURALS:
        return _of_role(index, user, kind, new, old)
    return _of_binding(index, user, new)


def missing_role(index: RoleIndex, binding: Object) -> str | None:
    """Return the role that a binding names and that does not exist, as Kubernetes words it."""
    kind, name = _role_of(binding)
    namespace = binding["metadata"].get("namespace") or ""
    return None if index.role(kind, namespace, name) is not None else f'{kind.lower()}.{GROUP} "{name}" not found'


def may_bind(index: RoleIndex, user: User, binding: Object) -> bool:
    """Return whether the user may bind the role whatever its rules are."""
    if MASTERS in user.groups:
        return True
    kind, name = _role_of(binding)
    namespace = binding["metadata"].get("namespace") or ""
    asked = AccessRequest("bind", GROUP, _PLURALS.get(kind, ""), namespace=namespace, name=name)
    return index.decide(user, asked).allowed


def _of_role(index: RoleIndex, user: User, kind: str, new: Object, old: Object | None) -> str | None:
    collects = bool(new.get("aggregationRule"))
    # A role whose rules stay may be labelled by users who do not have its rights.
    if old is not None and rules_of(old) == rules_of(new) and old.get("aggregationRule") == new.get("aggregationRule"):
        return None
    meta = new["metadata"]
    namespace = meta.get("namespace") or ""
    asked = AccessRequest("escalate", GROUP, _PLURALS[kind], namespace=namespace, name=meta.get("name") or "")
    if index.decide(user, asked).allowed:
        return None
    return _granting(index, user, namespace, (*rules_of(new), *(EVERYTHING if collects else ())))


def _of_binding(index: RoleIndex, user: User, binding: Object) -> str | None:
    if may_bind(index, user, binding):
        return None
    kind, name = _role_of(binding)
    namespace = binding["metadata"].get("namespace") or ""
    # A binding may come before its role, and grants nothing until then.
    return _granting(index, user, namespace, index.role(kind, namespace, name) or ())


def _role_of(binding: Object) -> tuple[str, str]:
    ref = section(binding, "roleRef")
    return str(ref.get("kind") or ""), str(ref.get("name") or "")


def _granting(index: RoleIndex, user: User, namespace: str, rules: Iterable[PolicyRule]) -> str | None:
    held, errors = index.rules(user, namespace)
    missing = uncovered(held, rules)
    if not missing:
        return None
    listed = "\n".join(sorted({rule.brief() for rule in _compact(missing)}))
    told = (
        f'user "{user.name}" (groups={quoted(user.groups)}) is attempting to grant RBAC permissions not currently held'
    )
    return f"{told}:\n{listed}" + (f"; resolution errors: [{' '.join(errors)}]" if errors else "")


def uncovered(held: Sequence[PolicyRule], asked: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Return the single rights of `asked` that no single rule of `held` covers."""
    # One rule must cover it alone: Kubernetes splits rights so finely that two rules never share one.
    return [one for rule in asked for one in _single(rule) if not any(_covers(each, one) for each in held)]


def _single(rule: PolicyRule) -> Iterator[PolicyRule]:
    """Split a rule into rights of one verb, group, resource and name, or of one verb and URL."""
    for group in rule.groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                if not rule.names:
                    yield PolicyRule((verb,), (group,), (resource,))
                for name in rule.names:
                    yield PolicyRule((verb,), (group,), (resource,), (name,))
    for url in rule.urls:
        for verb in rule.verbs:
            yield PolicyRule((verb,), urls=(url,))


def _covers(held: PolicyRule, one: PolicyRule) -> bool:
    if not (ANY in held.verbs or one.verbs[0] in held.verbs):
        return False
    if one.urls:
        return any(url_matches(pattern, one.urls[0]) for pattern in held.urls)
    resource = one.resources[0]
    _, slash, sub = resource.partition("/")
    return (
        (ANY in held.groups or one.groups[0] in held.groups)
        and (ANY in held.resources or resource in held.resources or bool(slash and f"*/{sub}" in held.resources))
        # Rights about any name cover those about one, and not the reverse.
        and (not held.names or (bool(one.names) and one.names[0] in held.names))
    )


def _compact(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Join the verbs of rights about one resource."""
    verbs: dict[PolicyRule, list[str]] = {}
    for rule in rules:
        verbs.setdefault(PolicyRule((), rule.groups, rule.resources, rule.names, rule.urls), []).extend(rule.verbs)
    found: list[PolicyRule] = []
    for rest, of_one in verbs.items():
        # As Kubernetes, which joins rights about resources alone.
        together = [(verb,) for verb in of_one] if rest.urls else [tuple(dict.fromkeys(of_one))]
        found += [PolicyRule(each, rest.groups, rest.resources, rest.names, rest.urls) for each in together]
    return found
