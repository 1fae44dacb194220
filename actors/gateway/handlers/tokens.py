# SPDX-License-Identifier: Apache-2.0
"""POST of serviceaccounts/NAME/token: a token that names its account. It grants nothing, since no client is asked for
one.

Source: Kubernetes' TokenRequest; the claims are those of its service account issuer.
"""

from __future__ import annotations

import base64
import json
from hashlib import blake2b
from typing import Final

from pumice.actors.gateway.forms import encode
from pumice.actors.gateway.problems import invalid
from pumice.actors.gateway.request.bodies import read_object
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.paths import Target
from pumice.actors.gateway.site import Site
from pumice.cluster.api.fields import is_list
from pumice.cluster.kube.statuses import timestamp
from pumice.core.objects.metadata import Object, section

AUDIENCE: Final = "https://kubernetes.default.svc.cluster.local"
# The bounds of Kubernetes' ValidateTokenRequest.
LEAST_S: Final = 600
MOST_S: Final = 1 << 32
DEFAULT_S: Final = 3600


async def create(site: Site, exchange: Exchange, target: Target) -> None:
    """Answer 201 with the TokenRequest. Raises ApiError (404, 422)."""
    account = await site.get("ServiceAccount", target.namespace, target.name)
    asked = section(await read_object(exchange, site.settings.body_limit), "spec")
    seconds = asked.get("expirationSeconds") or DEFAULT_S
    if not isinstance(seconds, int) or not LEAST_S <= seconds <= MOST_S:
        why = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
        raise invalid("TokenRequest", "", [("FieldValueInvalid", "spec.expirationSeconds", why)])
    given: object = asked.get("audiences")
    audiences = list(map(str, given)) if is_list(given) and given else [AUDIENCE]
    now = site.clock.now()
    answer = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": target.name, "namespace": target.namespace, "creationTimestamp": timestamp(now)},
        "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": asked.get("boundObjectRef")},
        "status": {"token": _token(account, audiences, now, seconds), "expirationTimestamp": timestamp(now + seconds)},
    }
    await exchange.answer(201, encode(answer))


def _token(account: Object, audiences: list[str], now: float, seconds: int) -> str:
    """Return a token in the shape of a JSON Web Token; its signature is a hash without a secret."""
    meta = account["metadata"]
    namespace, name = meta["namespace"], meta["name"]
    claims = {
        "aud": audiences,
        "exp": int(now) + seconds,
        "iat": int(now),
        "iss": AUDIENCE,
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": meta["uid"]}},
        "nbf": int(now),
        "sub": f"system:serviceaccount:{namespace}:{name}",
    }
    said = ".".join(_text(json.dumps(part).encode()) for part in ({"alg": "none", "typ": "JWT"}, claims))
    return f"{said}.{_text(blake2b(said.encode(), digest_size=32).digest())}"


def _text(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()
