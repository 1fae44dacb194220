# SPDX-License-Identifier: Apache-2.0
"""Reviews of access and identity: every authenticated client may do everything, so the answer is always yes."""

from __future__ import annotations

from typing import Final

from pumice.actors.gateway.discovery.groups import REVIEWS
from pumice.actors.gateway.forms import encode
from pumice.actors.gateway.problems import bad_request, no_such_path, wrong_method
from pumice.actors.gateway.request.bodies import read_object
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.negotiation import negotiate
from pumice.actors.gateway.request.paths import Target
from pumice.actors.gateway.site import Site
from pumice.cluster.kube.statuses import GROUPS, USER
from pumice.core.objects.metadata import Object, section

EVERYTHING: Final[Object] = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}
_ANSWERS: Final[dict[str, Object]] = {
    "SelfSubjectAccessReview": {"allowed": True, "reason": "every authenticated client may do everything"},
    "SubjectAccessReview": {"allowed": True, "reason": "every authenticated client may do everything"},
    "LocalSubjectAccessReview": {"allowed": True, "reason": "every authenticated client may do everything"},
    "SelfSubjectRulesReview": EVERYTHING,
    "SelfSubjectReview": {"userInfo": {"username": USER, "groups": list(GROUPS)}},
    "TokenReview": {"authenticated": True, "user": {"username": USER, "groups": list(GROUPS)}},
}


def kind_of_review(target: Target) -> str:
    """Return the kind of review that a path asks for; "" for another path."""
    if target.version != "v1" or target.name:
        return ""
    if (target.group, target.plural) == ("authorization.k8s.io", "localsubjectaccessreviews"):
        return "LocalSubjectAccessReview"
    return dict(REVIEWS.get(target.group, ())).get(target.plural, "")


async def review(site: Site, exchange: Exchange, target: Target) -> None:
    """Answer a review with yes."""
    kind = kind_of_review(target)
    if not kind:
        raise no_such_path()
    if exchange.method != "POST":
        raise wrong_method(exchange.method)
    negotiate(exchange.header("accept"), shapes=False)
    asked = await read_object(exchange, site.settings.body_limit)
    if asked.get("kind", kind) != kind:
        raise bad_request(f"expected a {kind} in the body, found {asked['kind']!r}")
    answer = {
        "kind": kind,
        "apiVersion": target.api_version,
        "metadata": {"creationTimestamp": None},
        "spec": section(asked, "spec"),
        "status": _ANSWERS[kind],
    }
    if kind == "SelfSubjectReview":
        del answer["spec"]
    await exchange.answer(201, encode(answer))
