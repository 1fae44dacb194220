# SPDX-License-Identifier: Apache-2.0
"""Requests in the name of another user (source: apiserver's `pkg/endpoints/filters/impersonation.go`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from pumice.actors.gateway.problems import bad_request
from pumice.cluster.rbac.rules import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    AccessRequest,
    User,
    account_groups,
    account_of,
)

if TYPE_CHECKING:
    from pumice.actors.gateway.identity.rights import Rights
    from pumice.actors.gateway.request.exchange import Exchange

WHO: Final = "impersonate-user"
GROUP: Final = "impersonate-group"
UID: Final = "impersonate-uid"
EXTRA: Final = "impersonate-extra-"
_AUTHENTICATION: Final = "authentication.k8s.io"


def impersonated(rights: Rights, exchange: Exchange) -> User:
    """Return the user in whose name a request comes: its sender, or the one of its headers. Raises ApiError (400, 403).

    `ADMIN` is never named here: a sender with the right to impersonate `system:masters` may do everything anyhow.
    """
    headers = exchange.headers
    # Most requests name no other user: then nothing more is read.
    if not any(name.startswith("impersonate-") for name in headers):
        return exchange.user
    name, groups, uid = exchange.header(WHO), exchange.every(GROUP), exchange.header(UID)
    extra = {
        unquote(each.removeprefix(EXTRA)): tuple(exchange.every(each)) for each in headers if each.startswith(EXTRA)
    }
    if not name:
        raise bad_request("requested impersonation without a user: Impersonate-User is missing")
    account = account_of(name)
    # All of it, before any is believed: one right that is missing refuses the request.
    for asked in _asked(name, account, groups, uid, extra):
        rights.demand(exchange.user, asked)
    # The groups of an account are known; where the sender names some, they count instead.
    if not groups and account is not None:
        groups = list(account_groups(account[0]))
    return User(name, tuple(_completed(name, groups)), uid, tuple(extra.items()))


def _asked(
    name: str, account: tuple[str, str] | None, groups: list[str], uid: str, extra: dict[str, tuple[str, ...]]
) -> list[AccessRequest]:
    """Return what the sender must be allowed to impersonate."""

    def one(resource: str, value: str, *, group: str = "", subresource: str = "", namespace: str = "") -> AccessRequest:
        return AccessRequest("impersonate", group, resource, subresource, namespace, value)

    first = one("users", name) if account is None else one("serviceaccounts", account[1], namespace=account[0])
    return [
        first,
        *(one("groups", group) for group in groups),
        *(one("uids", each, group=_AUTHENTICATION) for each in [uid] if each),
        *(
            one("userextras", value, group=_AUTHENTICATION, subresource=key)
            for key, values in extra.items()
            for value in values
        ),
    ]


def _completed(name: str, groups: list[str]) -> list[str]:
    """Return the groups with the one that all users of their sort have."""
    if AUTHENTICATED in groups or UNAUTHENTICATED in groups:
        return groups
    return [*groups, UNAUTHENTICATED if name == ANONYMOUS else AUTHENTICATED]
