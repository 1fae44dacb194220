# SPDX-License-Identifier: Apache-2.0
"""Tokens of ServiceAccounts: JSON Web Tokens (HS256) that are signed here, end, and are bound to objects.

The claims are those of Kubernetes' service account issuer (`pkg/serviceaccount/claims.go`). The server
alone has the key of the signatures, so a hash with it (RFC 7518, section 3.2) does what a pair of keys would.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

from pumice.actors.gateway.identity.users import authenticated
from pumice.cluster.rbac.rules import User, account_groups, account_name
from pumice.core.objects.metadata import Object, is_list, is_mapping, section

AUDIENCE: Final = "https://kubernetes.default.svc.cluster.local"
"""The audience of this API, and the issuer of its tokens."""
BINDABLE: Final = {"Pod": "pod", "Secret": "secret", "Node": "node"}
"""Kinds that a token may be bound to, with their claims."""
_HEAD: Final = {"alg": "HS256", "typ": "JWT"}
_PARTS: Final = 3
_EXTRA: Final = "authentication.kubernetes.io/"
LEEWAY_S: Final = 60.0
"""A token counts so long before its time: clocks differ."""

Find = Callable[[str, str, str], Awaitable[Object | None]]
"""Return the object of a kind, namespace and name."""


class BoundObject(NamedTuple):
    """The object that a token ends with."""

    kind: str
    name: str
    uid: str


class TokenOwner(NamedTuple):
    """A valid token: its user and its audiences."""

    user: User
    audiences: tuple[str, ...]


class InvalidTokenError(Exception):
    """A token that is none, has ended, or whose account or object has gone."""


def signed(
    key: bytes,
    account: Object,
    audiences: Sequence[str],
    now: float,
    seconds: int,
    bound: BoundObject | None,
    number: int,
) -> str:
    """Return a token. `number`: of this token, which makes its id another one than that of all others."""
    meta = account["metadata"]
    namespace, name = meta["namespace"], meta["name"]
    about: Object = {"namespace": namespace, "serviceaccount": {"name": name, "uid": meta["uid"]}}
    if bound is not None:
        about[BINDABLE[bound.kind]] = {"name": bound.name, "uid": bound.uid}
    # Made of the key, not drawn at random: without the key the id cannot be foreseen.
    mark = hmac.new(key, f"{namespace}/{name} {now} {number}".encode(), "sha256").hexdigest()
    claims = {
        "aud": list(audiences),
        "exp": int(now) + seconds,
        "iat": int(now),
        "iss": AUDIENCE,
        "jti": f"{mark[:8]}-{mark[8:12]}-{mark[12:16]}-{mark[16:20]}-{mark[20:32]}",
        "kubernetes.io": about,
        "nbf": int(now),
        "sub": account_name(namespace, name),
    }
    said = ".".join(_text(json.dumps(part).encode()) for part in (_HEAD, claims))
    return f"{said}.{_signature(key, said)}"


def looks_signed(token: str) -> bool:
    """Return whether a text has the shape of such a token."""
    return token.count(".") == _PARTS - 1


async def owner(key: bytes, token: str, now: float, find: Find) -> TokenOwner:
    """Return the owner of a token. Raises InvalidTokenError."""
    said, _, signature = token.rpartition(".")
    # Before anything is read: who cannot sign must not choose what is parsed.
    if not hmac.compare_digest(signature.encode(), _signature(key, said).encode()):
        raise InvalidTokenError("invalid bearer token: the signature is not of this server")
    claims = _claims(said)
    if not claims["nbf"] - LEEWAY_S <= now < claims["exp"]:
        raise InvalidTokenError("invalid bearer token: service account token has expired")
    about = section(claims, "kubernetes.io")
    namespace, account = about["namespace"], section(about, "serviceaccount")
    await _demand(find, "ServiceAccount", namespace, account)
    extra: list[tuple[str, tuple[str, ...]]] = [(f"{_EXTRA}credential-id", (f"JTI={claims['jti']}",))]
    for kind, claim in BINDABLE.items():
        if claim in about:
            await _demand(find, kind, "" if kind == "Node" else namespace, about[claim])
            extra += [(f"{_EXTRA}{claim}-{part}", (about[claim][part],)) for part in ("name", "uid")]
    groups = authenticated(account_groups(namespace))
    user = User(account_name(namespace, account["name"]), groups, account["uid"], tuple(extra))
    return TokenOwner(user, tuple(claims["aud"]))


async def _demand(find: Find, kind: str, namespace: str, named: Object) -> None:
    """Check that the very object exists that the token names."""
    found = await find(kind, namespace, named["name"])
    # By the uid, too: an account made anew under its name takes no token of the old one.
    if found is None or found["metadata"]["uid"] != named["uid"]:
        raise InvalidTokenError(f"invalid bearer token: {kind} {named['name']} has gone")


def _claims(said: str) -> dict[str, Any]:
    try:
        body = said.partition(".")[2]
        # The padding that b64decode demands is left out in tokens (RFC 7515, section 2).
        claims: object = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except ValueError as error:
        raise InvalidTokenError("invalid bearer token") from error
    if not is_mapping(claims) or not is_list(claims.get("aud")):
        raise InvalidTokenError("invalid bearer token")
    return claims


def _signature(key: bytes, said: str) -> str:
    return _text(hmac.digest(key, said.encode(), "sha256"))


def _text(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()
