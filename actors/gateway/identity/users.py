# SPDX-License-Identifier: Apache-2.0
"""Users by their credentials: the one of the server's own token, and those of client certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.cluster.kube.statuses import GROUPS, USER
from pumice.cluster.rbac.rules import AUTHENTICATED, User

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.actors.gateway.request.exchange import PeerSubject

ADMIN: Final = User(USER, GROUPS)
"""The user with all rights: the holder of `--token`, this process's controllers, every client without authorization."""


def authenticated(groups: Iterable[str]) -> tuple[str, ...]:
    """Return the groups of a user whose credentials were checked."""
    return tuple(dict.fromkeys([*groups, AUTHENTICATED]))


def user_of_certificate(subject: PeerSubject) -> User | None:
    """Return the user of a client certificate: its common name, and its organizations as groups (Kubernetes'
    `authentication/request/x509`); None without a common name.
    """
    found: dict[str, list[str]] = {}
    for name, value in (pair for part in subject for pair in part):
        found.setdefault(name, []).append(value)
    if "commonName" not in found:
        return None
    return User(found["commonName"][-1], authenticated(found.get("organizationName", ())))
