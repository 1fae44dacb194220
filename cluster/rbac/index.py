# SPDX-License-Identifier: Apache-2.0
"""The index of roles: whether a user may do what a request asks, in a few dictionary look-ups.

Roles and bindings are heard one by one, as they change. What a subject (a user or a group) may do is compiled when one
of its requests is first judged, and forgotten with the next change of any role or binding. Source of the rules:
Kubernetes' `plugin/pkg/auth/authorizer/rbac`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace

from pumice.cluster.rbac.rules import ANY, MASTERS, AccessRequest, PolicyRule, User, account_name, rules_of, url_matches
from pumice.core.objects.metadata import Object, rows, section

Key = tuple[str, str]
"""Namespace and name; the namespace of ClusterRoles and their bindings is ""."""
Subject = tuple[str, str]
"""Kind ("User" or "Group") and name."""
K = TypeVar("K")
MOST_USERS: Final = 4096
"""Users whose subjects are remembered: tokens and certificates bring few names, impersonation any number."""


class Decision(NamedTuple):
    """The decision on a request. `reason`: the binding that allows it, or the roles that were not found."""

    allowed: bool
    reason: str = ""


class _Binding(NamedTuple):
    key: Key
    role: Key
    kind: str
    subjects: dict[Subject, str]  # with their description

    def why(self, subject: Subject) -> str:
        """Return Kubernetes' description of the binding and its subject."""
        namespace, name = self.key
        sort, shown = ("RoleBinding", f"{name}/{namespace}") if namespace else ("ClusterRoleBinding", name)
        return f'{sort} "{shown}" of {self.kind} "{self.role[1]}" to {self.subjects[subject]}'


class _Grant(NamedTuple):
    names: frozenset[str]  # empty: of any name
    why: str


class _Table:
    """The rules of one subject that hold in one namespace, or (in the table of "") everywhere."""

    __slots__ = ("missing", "resources", "urls")

    def __init__(self) -> None:
        self.resources: dict[tuple[str, str, str], list[_Grant]] = {}  # by verb, group and resource
        self.urls: list[tuple[frozenset[str], str, str]] = []  # verbs, pattern, why
        self.missing: list[str] = []

    def add(self, rule: PolicyRule, why: str) -> None:
        """Add a rule."""
        grant = _Grant(frozenset(rule.names), why)
        for group in rule.groups:
            for resource in rule.resources:
                for verb in rule.verbs:
                    self.resources.setdefault((verb, group, resource), []).append(grant)
        self.urls += [(frozenset(rule.verbs), url, why) for url in rule.urls]

    def grant(self, asked: AccessRequest, keys: list[tuple[str, str, str]]) -> str | None:
        """Return what allows the request, None for nothing."""
        if asked.path:
            for verbs, pattern, why in self.urls:
                if (asked.verb in verbs or ANY in verbs) and url_matches(pattern, asked.path):
                    return why
            return None
        resources, name = self.resources, asked.name
        for key in keys:
            if (grants := resources.get(key)) is not None:
                for grant in grants:
                    if not grant.names or name in grant.names:
                        return grant.why
        return None


_Tables = dict[str, _Table]
"""By namespace."""


class RoleIndex:
    """All roles and bindings, and who may do what by them."""

    def __init__(self) -> None:
        self._roles: dict[Key, tuple[PolicyRule, ...]] = {}
        self._cluster_roles: dict[str, tuple[PolicyRule, ...]] = {}
        self._bindings: dict[Key, _Binding] = {}
        self._bound: dict[Subject, dict[Key, None]] = {}
        self._compiled: dict[Subject, _Tables] = {}
        self._of_user: dict[tuple[str, tuple[str, ...]], tuple[_Tables, ...]] = {}

    # --- what there is

    def heard(self, change: str, kind: str, obj: Object) -> None:
        """Note a role or binding that has come, changed or gone (`change` "DELETED")."""
        # All of it: which subjects a role reaches is not kept, and roles change seldom.
        self._compiled.clear()
        self._of_user.clear()
        key = (obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
        gone = change == "DELETED"
        if kind.endswith("Binding"):
            self._unbind(key)
            if not gone:
                self._bind(_binding(key, obj))
        elif kind == "ClusterRole":
            _put(self._cluster_roles, key[1], None if gone else rules_of(obj))
        else:
            _put(self._roles, key, None if gone else rules_of(obj))

    def _bind(self, binding: _Binding) -> None:
        self._bindings[binding.key] = binding
        for subject in binding.subjects:
            self._bound.setdefault(subject, {})[binding.key] = None

    def _unbind(self, key: Key) -> None:
        before = self._bindings.pop(key, None)
        for subject in before.subjects if before is not None else ():
            bound = self._bound[subject]
            del bound[key]
            if not bound:
                del self._bound[subject]

    def role(self, kind: str, namespace: str, name: str) -> tuple[PolicyRule, ...] | None:
        """Return the rules of a role, None for one that does not exist."""
        return self._cluster_roles.get(name) if kind == "ClusterRole" else self._roles.get((namespace, name))

    # --- decisions

    def decide(self, user: User, asked: AccessRequest) -> Decision:
        """Return whether the user may do it."""
        if MASTERS in user.groups:
            return Decision(True)
        keys = _keys(asked)
        missing: list[str] = []
        # Bindings of the whole cluster first, as Kubernetes visits them (`pkg/registry/rbac/validation/rule.go`).
        for namespace in ("", asked.namespace) if asked.namespace else ("",):
            for tables in self._tables_of(user):
                if (table := tables.get(namespace)) is not None:
                    if (why := table.grant(asked, keys)) is not None:
                        return Decision(True, f"RBAC: allowed by {why}")
                    missing += table.missing
        return Decision(False, f"RBAC: {_joined(missing)}" if missing else "")

    def namespaces(self, user: User, asked: AccessRequest) -> frozenset[str] | None:
        """Return the namespaces in which the user may do it, None when it is allowed in all of them."""
        if self.decide(user, replace(asked, namespace="")).allowed:
            return None
        keys = _keys(asked)
        held = ((name, table) for tables in self._tables_of(user) for name, table in tables.items() if name)
        return frozenset(name for name, table in held if table.grant(asked, keys) is not None)

    def rules(self, user: User, namespace: str) -> tuple[list[PolicyRule], list[str]]:
        """Return all rules that the user has in a namespace ("": everywhere), in order, and what was not found."""
        found: list[PolicyRule] = []
        missing: list[str] = []
        for key in sorted({key for subject in _subjects(user) for key in self._bound.get(subject, ())}):
            if key[0] in ("", namespace):
                binding = self._bindings[key]
                rules = self.role(binding.kind, *binding.role)
                found += rules or ()
                missing += [_not_found(binding)] if rules is None else []
        return found, missing

    def _tables_of(self, user: User) -> tuple[_Tables, ...]:
        """Return the tables of the user and of its groups that have a binding."""
        key = (user.name, user.groups)
        found = self._of_user.get(key)
        if found is None:
            if len(self._of_user) >= MOST_USERS:
                self._of_user.clear()
            bound = [subject for subject in _subjects(user) if subject in self._bound]
            found = self._of_user[key] = tuple(map(self._tables, bound))
        return found

    def _tables(self, subject: Subject) -> _Tables:
        found = self._compiled.get(subject)
        if found is None:
            found = self._compiled[subject] = {}
            # In the order of their names, so that the reason of a decision is always the same one.
            for key in sorted(self._bound[subject]):
                self._add(found.setdefault(key[0], _Table()), self._bindings[key], subject)
        return found

    def _add(self, table: _Table, binding: _Binding, subject: Subject) -> None:
        rules = self.role(binding.kind, *binding.role)
        if rules is None:
            table.missing.append(_not_found(binding))
            return
        why = binding.why(subject)
        for rule in rules:
            table.add(rule, why)


def _subjects(user: User) -> Iterator[Subject]:
    yield "User", user.name
    for group in user.groups:
        yield "Group", group


def _binding(key: Key, obj: Object) -> _Binding:
    ref = section(obj, "roleRef")
    kind, name = str(ref.get("kind") or ""), str(ref.get("name") or "")
    subjects: dict[Subject, str] = {}
    for each in rows(obj, "subjects"):
        sort, named = str(each.get("kind") or ""), str(each.get("name") or "")
        if sort == "ServiceAccount":
            # Without a namespace an account is one of the binding's own.
            if namespace := str(each.get("namespace") or "") or key[0]:
                subjects.setdefault(("User", account_name(namespace, named)), f'{sort} "{named}/{namespace}"')
        elif sort in ("User", "Group"):
            subjects.setdefault((sort, named), f'{sort} "{named}"')
    return _Binding(key, ("" if kind == "ClusterRole" else key[0], name), kind, subjects)


def _not_found(binding: _Binding) -> str:
    return f'{binding.kind.lower()}.rbac.authorization.k8s.io "{binding.role[1]}" not found'


def _keys(asked: AccessRequest) -> list[tuple[str, str, str]]:
    """Return the keys under which a rule about the request may stand."""
    resources: tuple[str, ...] = (asked.resource, ANY)
    if asked.subresource:
        # `*` is about subresources too; `*/scale` about those of any resource; `pods/*` about nothing.
        resources = (f"{asked.resource}/{asked.subresource}", ANY, f"*/{asked.subresource}")
    return [
        (verb, group, resource) for resource in resources for group in (asked.group, ANY) for verb in (asked.verb, ANY)
    ]


def _joined(errors: list[str]) -> str:
    """Return errors as Kubernetes' aggregate writes them: each once."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _put(held: dict[K, tuple[PolicyRule, ...]], key: K, rules: tuple[PolicyRule, ...] | None) -> None:
    if rules is None:
        held.pop(key, None)
    else:
        held[key] = rules
