# SPDX-License-Identifier: Apache-2.0
"""POST of serviceaccounts/NAME/token: a token with which its holder acts as the account.

Source: Kubernetes' TokenRequest (`pkg/registry/core/serviceaccount/storage/token.go`).
"""

from __future__ import annotations

from typing import Final

from pumice.actors.gateway.forms import answer_object, form_of
from pumice.actors.gateway.identity.account_tokens import AUDIENCE, BINDABLE, BoundObject, signed
from pumice.actors.gateway.problems import ApiError, bad_request, invalid
from pumice.actors.gateway.request.bodies import read_object
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.paths import Target
from pumice.actors.gateway.site import Site
from pumice.cluster.kube.statuses import timestamp
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object, is_list, section

KIND: Final = "TokenRequest"
API_VERSION: Final = "authentication.k8s.io/v1"
# The bounds of Kubernetes' ValidateTokenRequest.
LEAST_S: Final = 600
MOST_S: Final = 1 << 32
DEFAULT_S: Final = 3600


async def create(site: Site, exchange: Exchange, target: Target) -> None:
    """Answer 201 with the TokenRequest. Raises ApiError (400, 404, 409, 422)."""
    form = form_of(exchange, API_VERSION, KIND, shapes=False)
    account = await site.get("ServiceAccount", target.namespace, target.name)
    asked = section(await read_object(exchange, site.settings.body_limit), "spec")
    seconds = asked.get("expirationSeconds") or DEFAULT_S
    if not isinstance(seconds, int) or not LEAST_S <= seconds <= MOST_S:
        why = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
        raise invalid(KIND, "", [("FieldValueInvalid", "spec.expirationSeconds", why)])
    given: object = asked.get("audiences")
    audiences = list(map(str, given)) if is_list(given) and given else [AUDIENCE]
    bound = await _bound(site, target, section(asked, "boundObjectRef"))
    now = site.clock.now()
    site.tokens_made += 1
    token = signed(site.settings.account_key, account, audiences, now, seconds, bound, site.tokens_made)
    answer = {
        "kind": KIND,
        "apiVersion": API_VERSION,
        "metadata": {"name": target.name, "namespace": target.namespace, "creationTimestamp": timestamp(now)},
        "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": asked.get("boundObjectRef")},
        "status": {"token": token, "expirationTimestamp": timestamp(now + seconds)},
    }
    await answer_object(exchange, 201, answer, form)


async def _bound(site: Site, target: Target, ref: Object) -> BoundObject | None:
    """Return the object that the token ends with. Raises ApiError when it does not exist, or is of another account."""
    if not ref:
        return None
    kind, name, uid = (str(ref.get(part) or "") for part in ("kind", "name", "uid"))
    if kind not in BINDABLE or ref.get("apiVersion") != "v1":
        raise bad_request(f"cannot bind token to object of type {ref.get('apiVersion')}, Kind={kind}")
    found = await site.get(kind, "" if kind == "Node" else target.namespace, name)
    if uid and uid != found["metadata"]["uid"]:
        why = f"the UID in the bound object reference ({uid}) does not match the UID in record"
        raise ApiError(Refused(409, "Conflict", f'Operation cannot be fulfilled on {kind.lower()}s "{name}": {why}'))
    if kind == "Pod" and (section(found, "spec").get("serviceAccountName") or "default") != target.name:
        raise bad_request(
            f'cannot bind token for serviceaccount "{target.name}" to pod running with different serviceaccount name.'
        )
    return BoundObject(kind, name, found["metadata"]["uid"])
