# SPDX-License-Identifier: Apache-2.0
"""Users, requests and rules of roles (source: Kubernetes' `pkg/apis/rbac/v1/evaluation_helpers.go`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from pumice.core.objects.metadata import Object, is_list, rows

GROUP: Final = "rbac.authorization.k8s.io"
KINDS: Final = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
"""Keys of the kinds that say who may do what."""
MASTERS: Final = "system:masters"
"""The group that no role can hold back (`authorizerfactory.NewPrivilegedGroups`)."""
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
ANONYMOUS: Final = "system:anonymous"
ACCOUNTS: Final = "system:serviceaccounts"
ANY: Final = "*"
_ACCOUNT: Final = "system:serviceaccount:"


class User(Struct, frozen=True, gc=False):
    """The sender of a request. `extra`: keys with their values."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def told(self) -> Object:
        """Return the user as reviews and webhooks show it."""
        made: Object = {"username": self.name}
        if self.uid:
            made["uid"] = self.uid
        if self.groups:
            made["groups"] = list(self.groups)
        if self.extra:
            made["extra"] = {key: list(values) for key, values in self.extra}
        return made


NOBODY: Final = User(ANONYMOUS, (UNAUTHENTICATED,))
"""The sender of a request without credentials."""


def account_name(namespace: str, name: str) -> str:
    """Return the user name of a ServiceAccount."""
    return f"{_ACCOUNT}{namespace}:{name}"


def account_of(user: str) -> tuple[str, str] | None:
    """Return the namespace and name of the ServiceAccount behind a user name, None for another user."""
    namespace, _, name = user.removeprefix(_ACCOUNT).partition(":")
    # A namespace has no colon, so what stands behind the first one is the name.
    return (namespace, name) if user.startswith(_ACCOUNT) and namespace and name and ":" not in name else None


def account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups of the ServiceAccounts of a namespace."""
    return ACCOUNTS, f"{ACCOUNTS}:{namespace}"


class AccessRequest(Struct, frozen=True, gc=False):
    """A request as roles judge it. `path`: of one about no resource; then `verb` is the method in lower case."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    def refusal(self, user: User, reason: str = "") -> str:
        """Return Kubernetes' sentence that the user may not (`responsewriters.Forbidden`)."""
        return f"{self._what(user)}: {reason}" if reason else self._what(user)

    def _what(self, user: User) -> str:
        if self.path:
            return f'User "{user.name}" cannot {self.verb} path "{self.path}"'
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        # The sentence that clients and their users search for, letter by letter.
        return f'User "{user.name}" cannot {self.verb} resource "{resource}" in API group "{self.group}" {where}'


class PolicyRule(Struct, frozen=True, gc=False):
    """One rule of a role; without `names` it is about objects of any name."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def plain(self) -> Object:
        """Return the rule as it stands in an object."""
        parts = (
            ("verbs", self.verbs), ("apiGroups", self.groups), ("resources", self.resources),
            ("resourceNames", self.names), ("nonResourceURLs", self.urls),
        )  # fmt: skip
        return {name: list(values) for name, values in parts if values}

    def brief(self) -> str:
        """Return the rule in one line, as errors about escalation list it (`CompactString`)."""
        parts = (
            ("APIGroups", self.groups), ("Resources", self.resources), ("NonResourceURLs", self.urls),
            ("ResourceNames", self.names), ("Verbs", self.verbs),
        )  # fmt: skip
        return "{" + ", ".join(f"{name}:{quoted(values)}" for name, values in parts if values) + "}"


def quoted(values: Sequence[str]) -> str:
    """Return texts as Go's `%q` writes a slice."""
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


def rules_of(role: Object) -> tuple[PolicyRule, ...]:
    """Return the rules of a Role or ClusterRole."""
    return tuple(
        PolicyRule(
            _texts(rule, "verbs"),
            _texts(rule, "apiGroups"),
            _texts(rule, "resources"),
            _texts(rule, "resourceNames"),
            _texts(rule, "nonResourceURLs"),
        )
        for rule in rows(role, "rules")
    )


def _texts(rule: Object, name: str) -> tuple[str, ...]:
    listed: object = rule.get(name)
    # The schema refuses other values; a role that was loaded may have them, and then gives no right.
    return tuple(map(str, listed)) if is_list(listed) else ()


def url_matches(pattern: str, path: str) -> bool:
    """Return whether a non-resource URL of a rule is about a path: `*` at its end matches any rest."""
    # All stars at the end go, as Go's TrimRight takes them (`evaluation_helpers.go`).
    return pattern == path or (pattern.endswith(ANY) and path.startswith(pattern.rstrip(ANY)))
