# SPDX-License-Identifier: Apache-2.0
"""Refusals of the gateway itself, before or instead of the api, as Kubernetes' Statuses: one function a reason.

A refusal travels up as `ApiError` and becomes a Status body (`pumice.actors.gateway.problems`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pumice.config.errors import RequestError
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object

# --- Kubernetes' Status bodies

NOT_FOUND: Final = 404


def failure(refused: Refused, token: str = "") -> Object:
    """Return the Status of a refusal; `token`: a list can go on with it."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {"continue": token} if token else {},
        "status": "Failure",
        "message": refused.message,
        "reason": refused.reason,
        # kubectl looks into the details of whatever is not found
        **({"details": dict(refused.details)} if refused.details or refused.code == NOT_FOUND else {}),
        "code": refused.code,
    }


def success(details: Object | None = None, code: int = 200) -> Object:
    """Return the Status of a successful request that has no object to show; `code` is left out when it is 200."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        status["details"] = details
    return status if code == 200 else {**status, "code": code}


RETRY_S: Final = 1
PATCH_TYPES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
    "application/strategic-merge-patch+json",
)
BODY_TYPES: Final = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")


class ApiError(RequestError):
    """The request is refused; `headers` go into the answer beside the Status. `token`: a list can go on with it."""

    def __init__(self, refused: Refused, headers: Mapping[str, str] | None = None, token: str = "") -> None:
        self.refused = refused
        self.token = token
        self.headers = dict(headers or {})
        super().__init__(refused.message)


def bad_request(message: str) -> ApiError:
    """Return 400."""
    return ApiError(Refused(400, "BadRequest", message))


def unauthorized() -> ApiError:
    """Return 401: no token, or a wrong one."""
    return ApiError(Refused(401, "Unauthorized", "Unauthorized"), {"www-authenticate": "Bearer"})


def forbidden(message: str) -> ApiError:
    """Return 403."""
    return ApiError(Refused(403, "Forbidden", message))


def no_such_path() -> ApiError:
    """Return 404 for an unknown path."""
    return ApiError(Refused(404, "NotFound", "the server could not find the requested resource"))


def not_found(resource: str, name: str, details: Object) -> ApiError:
    """Return 404 for an object."""
    return ApiError(Refused(404, "NotFound", f'{resource} "{name}" not found', dict(details)))


def wrong_method(method: str) -> ApiError:
    """Return 405: the resource exists and does not support the method."""
    why = "the server does not allow this method on the requested resource"
    return ApiError(Refused(405, "MethodNotAllowed", why, {"causes": [{"message": f"{method} is not supported"}]}))


def not_acceptable(known: Sequence[str]) -> ApiError:
    """Return 406: none of the media types in Accept can be written."""
    why = f"only the following media types are accepted: {', '.join(known)}"
    return ApiError(Refused(406, "NotAcceptable", why))


def unwritable(kind: str, name: str, why: str) -> ApiError:
    """Return 406: protobuf cannot hold a value of the object."""
    told = f'{kind} "{name}" cannot be written as protobuf: {why}. Accept application/json.'
    return ApiError(Refused(406, "NotAcceptable", told))


def expired(message: str, token: str = "") -> ApiError:
    """Return 410: the resourceVersion or continue token is too old."""
    return ApiError(Refused(410, "Expired", message), token=token)


def too_large(limit: int) -> ApiError:
    """Return 413; the rest of the body is not read, so the connection ends."""
    why = f"Request entity too large: limit is {limit}"
    return ApiError(Refused(413, "RequestEntityTooLarge", why), {"connection": "close"})


def headers_too_large(limit: int) -> ApiError:
    """Return 431; the connection ends."""
    why = f"the head of the request is too large: limit is {limit} bytes"
    return ApiError(Refused(431, "RequestHeaderFieldsTooLarge", why), {"connection": "close"})


def unsupported_media(found: str, known: Sequence[str] = BODY_TYPES) -> ApiError:
    """Return 415: a body of a type that cannot be read here."""
    accepted = ", ".join(known)
    why = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    details = {"causes": [{"message": f"content type {found!r}"}]}
    return ApiError(Refused(415, "UnsupportedMediaType", why, details))


def invalid(kind: str, name: str, causes: Sequence[tuple[str, str, str]], group: str = "") -> ApiError:
    """Return 422; each cause is reason, field, message."""
    told = ", ".join(f"{field}: {message}" for _, field, message in causes)
    qualified = f"{kind}.{group}" if group else kind
    listed = [{"reason": reason, "field": field, "message": message} for reason, field, message in causes]
    why = f'{qualified} "{name}" is invalid: {told if len(causes) == 1 else f"[{told}]"}'
    return ApiError(Refused(422, "Invalid", why, {"name": name, "group": group, "kind": kind, "causes": listed}))


def too_many(what: str, retry_s: int = RETRY_S) -> ApiError:
    """Return 429."""
    details = {"retryAfterSeconds": retry_s}
    return ApiError(Refused(429, "TooManyRequests", what, details), {"retry-after": str(retry_s)})


def unavailable(why: str) -> ApiError:
    """Return 503: not ready, or about to end."""
    refused = Refused(503, "ServiceUnavailable", why, {"retryAfterSeconds": RETRY_S})
    return ApiError(refused, {"retry-after": str(RETRY_S)})


def too_new(asked: int, current: int) -> ApiError:
    """Return 504: a resourceVersion that has not been given out yet."""
    why = f"Too large resource version: {asked}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    details = {"causes": causes, "retryAfterSeconds": RETRY_S}
    return ApiError(Refused(504, "Timeout", f"Timeout: {why}", details), {"retry-after": str(RETRY_S)})


def failed(why: str) -> ApiError:
    """Return 500: a fault of the machine, such as a full disk or a lost journal; the server ends."""
    return ApiError(Refused(500, "InternalError", f"{why}; the server stops"))


def internal(what: str) -> ApiError:
    """Return 500: a fault of Pumice."""
    return ApiError(Refused(500, "InternalError", f"bug in Pumice: {what}"))
