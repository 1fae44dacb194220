# SPDX-License-Identifier: Apache-2.0
"""Reviews of access and identity: what a user may do, and whose token it is (source: Kubernetes' `pkg/registry`, in
`authorization` and `authentication`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from pumice.actors.gateway.discovery.groups import REVIEWS
from pumice.actors.gateway.forms import answer_object, form_of
from pumice.actors.gateway.identity import account_tokens
from pumice.actors.gateway.identity.account_tokens import AUDIENCE, InvalidTokenError, TokenOwner
from pumice.actors.gateway.problems import bad_request, invalid, no_such_path, wrong_method
from pumice.actors.gateway.request.bodies import read_object
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.paths import Target
from pumice.actors.gateway.site import Site
from pumice.cluster.rbac.rules import AccessRequest, User
from pumice.core.objects.metadata import Object, is_list, is_mapping

EVERYTHING: Final[Object] = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}
_GROUP: Final = "authorization.k8s.io"


def kind_of_review(target: Target) -> str:
    """Return the kind of review that a path asks for; "" for another path."""
    if target.version != "v1" or target.name:
        return ""
    for plural, kind, namespaced in REVIEWS.get(target.group, ()):
        if plural == target.plural and namespaced is bool(target.namespace):
            return kind
    return ""


async def review(site: Site, exchange: Exchange, target: Target) -> None:
    """Answer a review. Raises ApiError (400, 404, 405, 422)."""
    kind = kind_of_review(target)
    if not kind:
        raise no_such_path()
    if exchange.method != "POST":
        raise wrong_method(exchange.method)
    # A review has no metadata, and so neither a table nor a partial form.
    form = form_of(exchange, target.api_version, kind, shapes=False)
    asked = await read_object(exchange, site.settings.body_limit)
    if asked.get("kind", kind) != kind:
        raise bad_request(f"expected a {kind} in the body, found {asked['kind']!r}")
    spec = _part(asked, "spec")
    answer = {
        "kind": kind,
        "apiVersion": target.api_version,
        "metadata": {"creationTimestamp": None},
        "spec": spec,
        "status": await _ANSWERS[kind](site, exchange, target, spec),
    }
    # Kubernetes' type has no spec.
    if kind == "SelfSubjectReview":
        del answer["spec"]
    await answer_object(exchange, 201, answer, form)


# --- Access


async def _own_access(site: Site, exchange: Exchange, _target: Target, spec: Object) -> Object:
    return _access(site, "SelfSubjectAccessReview", spec, exchange.user)


async def _access_of(site: Site, _exchange: Exchange, target: Target, spec: Object) -> Object:
    kind = "LocalSubjectAccessReview" if target.namespace else "SubjectAccessReview"
    if target.namespace and _text(_part(spec, "resourceAttributes"), "namespace") != target.namespace:
        raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {target.namespace}")
    name, groups = _text(spec, "user"), _texts(spec, "groups")
    if not name and not groups:
        why = "Invalid value: null: at least one of user or group must be specified"
        raise invalid(kind, "", [("FieldValueInvalid", "spec.user", why)], _GROUP)
    return _access(site, kind, spec, User(name, tuple(groups), _text(spec, "uid")))


def _access(site: Site, kind: str, spec: Object, user: User) -> Object:
    about, path = _part(spec, "resourceAttributes"), _part(spec, "nonResourceAttributes")
    # `is` between two booleans: exactly one of the two must be there.
    if bool(spec.get("resourceAttributes") is None) is (spec.get("nonResourceAttributes") is None):
        why = "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise invalid(kind, "", [("FieldValueInvalid", "spec.resourceAttributes", why)], _GROUP)
    if path:
        asked = AccessRequest(_text(path, "verb"), path=_text(path, "path"))
    else:
        parts = ("verb", "group", "resource", "subresource", "namespace", "name")
        asked = AccessRequest(*(_text(about, part) for part in parts))
    found = site.rights.decide(user, asked)
    return {"allowed": found.allowed, **({"reason": found.reason} if found.reason else {})}


async def _own_rules(site: Site, exchange: Exchange, _target: Target, spec: Object) -> Object:
    namespace = _text(spec, "namespace")
    if not namespace:
        raise bad_request("no namespace on request")
    # Without authorization everybody may do everything.
    if site.rights.index is None:
        return EVERYTHING
    rules, missing = site.rights.index.rules(exchange.user, namespace)
    return {
        "resourceRules": [rule.plain() for rule in rules if rule.resources],
        "nonResourceRules": [rule.plain() for rule in rules if rule.urls],
        "incomplete": False,
        **({"evaluationError": ", ".join(missing)} if missing else {}),
    }


# --- Identity


async def _self(_site: Site, exchange: Exchange, _target: Target, _spec: Object) -> Object:
    return {"userInfo": exchange.user.told()}


async def _token(site: Site, _exchange: Exchange, _target: Target, spec: Object) -> Object:
    # A TokenReview without audiences asks about those of the server itself.
    token, wanted = _text(spec, "token"), _texts(spec, "audiences") or [AUDIENCE]
    if not token:
        return {"authenticated": False, "user": {}}
    try:
        owner = await _owner(site, token)
    except InvalidTokenError as error:
        return {"authenticated": False, "user": {}, "error": str(error)}
    shared = [audience for audience in wanted if audience in owner.audiences]
    if not shared:
        why = f"token audiences {_listed(owner.audiences)} is invalid for the target audiences {_listed(wanted)}"
        return {"authenticated": False, "user": {}, "error": why}
    return {"authenticated": True, "user": owner.user.told(), "audiences": shared}


async def _owner(site: Site, token: str) -> TokenOwner:
    """Return the owner of a token. Raises InvalidTokenError."""
    known = site.authenticator.of_known(token)
    if known is not None:
        return TokenOwner(known, (AUDIENCE,))
    return await account_tokens.owner(site.settings.account_key, token, site.clock.now(), site.remembered)


def _listed(texts: Sequence[str]) -> str:
    return f"[{' '.join(map(repr, texts))}]".replace("'", '"')


def _part(holder: Object, name: str) -> Object:
    value: object = holder.get(name)
    if value is not None and not is_mapping(value):
        raise bad_request(f"{name}: expected an object")
    return value or {}


def _text(holder: Object, name: str) -> str:
    value: object = holder.get(name)
    if value is not None and not isinstance(value, str):
        raise bad_request(f"{name}: expected a text")
    return value or ""


def _texts(holder: Object, name: str) -> list[str]:
    value: object = holder.get(name)
    if value is not None and not is_list(value):
        raise bad_request(f"{name}: expected a list")
    return list(map(str, value or ()))


_ANSWERS: Final[dict[str, Callable[[Site, Exchange, Target, Object], Awaitable[Object]]]] = {
    "LocalSubjectAccessReview": _access_of,
    "SelfSubjectAccessReview": _own_access,
    "SelfSubjectReview": _self,
    "SelfSubjectRulesReview": _own_rules,
    "SubjectAccessReview": _access_of,
    "TokenReview": _token,
}
