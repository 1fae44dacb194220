# SPDX-License-Identifier: Apache-2.0
"""Rights of users: by roles, or all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.actors.gateway import advice
from pumice.actors.gateway.problems import ApiError
from pumice.actors.gateway.request.selection import named_object
from pumice.cluster.rbac.index import Decision, RoleIndex
from pumice.cluster.rbac.rules import AccessRequest, User
from pumice.core.messages.replies import Refused

if TYPE_CHECKING:
    from pumice.actors.gateway.request.exchange import Exchange

READS: Final = ("GET", "HEAD")
PODS: Final = AccessRequest("list", resource="pods")
"""The right that a question about pods, and about what is made of them, needs."""
_VERBS: Final = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ALL: Final = Decision(True, "every authenticated client may do everything")


class Rights:
    """The rights of users. `index` is None where all of them may do everything."""

    def __init__(self, index: RoleIndex | None) -> None:
        self.index = index

    def decide(self, user: User, asked: AccessRequest) -> Decision:
        """Return whether the user may."""
        return _ALL if self.index is None else self.index.decide(user, asked)

    def demand(self, user: User, asked: AccessRequest) -> None:
        """Raise ApiError (403) when the user may not."""
        if self.index is not None and not (found := self.index.decide(user, asked)).allowed:
            raise refusal(user, asked, found.reason)

    def namespaces(self, user: User, asked: AccessRequest) -> frozenset[str] | None:
        """Return the namespaces in which the user may, None for all."""
        return None if self.index is None else self.index.namespaces(user, asked)


def refusal(user: User, asked: AccessRequest, reason: str = "") -> ApiError:
    """Return Kubernetes' 403 (`responsewriters.ForbiddenStatusError`)."""
    why = asked.refusal(user, reason)
    resource = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    about = f'{resource} "{asked.name}" is ' if asked.name else f"{resource} is " if resource else ""
    details: dict[str, Any] = {"name": asked.name, "group": asked.group, "kind": asked.resource}
    told = {name: value for name, value in details.items() if value}
    return ApiError(Refused(403, "Forbidden", f"{about}forbidden: {why}", told))


def attributes_of(exchange: Exchange) -> AccessRequest | None:
    """Return what a request asks for, read from its path as the routes read it; None for a question to the adviser
    about all namespaces, which is answered as far as the asker may see (source: `RequestInfoFactory`).
    """
    target = exchange.target
    if target is None:
        return AccessRequest(exchange.method.lower(), path=exchange.path)
    if target.group == advice.GROUP and target.plural in advice.KINDS:
        # Whoever may list the pods of a namespace may ask about them.
        return AccessRequest("list", resource="pods", namespace=target.namespace) if target.namespace else None
    verb, name = _VERBS.get(exchange.method, exchange.method.lower()), target.name
    if target.watched:
        verb = "watch"
    elif not name and verb == "get":
        verb = "watch" if exchange.query.flag("watch") else "list"
    elif not name and verb == "delete":
        verb = "deletecollection"
    if not name and verb in ("list", "watch", "deletecollection"):
        name = named_object(exchange.query.text("fieldSelector"))
    # A namespace counts as one of its own objects: a role within it may be about it.
    namespace = target.name if target.plural == "namespaces" and not target.group else target.namespace
    return AccessRequest(verb, target.group, target.plural, target.subresource, namespace, name)
