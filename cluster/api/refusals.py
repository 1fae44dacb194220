# SPDX-License-Identifier: Apache-2.0
"""Refusals of the api, one function a reason, with Kubernetes' codes, reasons, messages and details.

A refusal is a value (`pumice.core.messages.replies.Refused`); nothing here raises.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from pumice.cluster.api.kinds import Kind
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object


class Cause(Struct, frozen=True, gc=False):
    """One problem of one field. `field` is a path like `spec.tasks[0].name`; `message` starts with the sort."""

    field: str
    reason: str
    message: str


def timed_out() -> Refused:
    """Return 504: the client's time is over."""
    return Refused(504, "Timeout", "request did not complete within the allotted timeout")


def invalid_value(field: str, value: object, why: str) -> Cause:
    """Return a cause: the value is not allowed there."""
    return Cause(field, "FieldValueInvalid", f"Invalid value: {_shown(value)}: {why}")


def required(field: str, why: str = "") -> Cause:
    """Return a cause: the field is required."""
    return Cause(field, "FieldValueRequired", f"Required value: {why}" if why else "Required value")


def duplicate(field: str, value: object, why: str = "") -> Cause:
    """Return a cause: the value may stand only once."""
    return Cause(field, "FieldValueDuplicate", f"Duplicate value: {_shown(value)}" + (f": {why}" if why else ""))


def unsupported(field: str, value: object, known: Sequence[str]) -> Cause:
    """Return a cause: the value is not one of the known ones."""
    listed = ", ".join(f'"{name}"' for name in known)
    return Cause(field, "FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {listed}")


def too_many(field: str, count: int, most: int) -> Cause:
    """Return a cause: there are too many, as Kubernetes words it."""
    return Cause(field, "FieldValueTooMany", f"Too many: {count}: must have at most {most} items")


def missing(field: str, value: object, why: str) -> Cause:
    """Return a cause: the value names an object that does not exist."""
    return Cause(field, "FieldValueNotFound", f"Not found: {_shown(value)}: {why}")


def forbidden_field(field: str, why: str) -> Cause:
    """Return a cause: the field may not be set or changed there."""
    return Cause(field, "FieldValueForbidden", f"Forbidden: {why}")


def invalid(kind: Kind, name: str, causes: Sequence[Cause], webhook: str = "") -> Refused:
    """Return 422 with every cause, in the words of an admission webhook where one would have found them."""
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    # brackets around several alone, as apimachinery's `Aggregate` prints errors (`pkg/util/errors/errors.go`)
    why = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    # `NewInvalid` names the kind; all other refusals name the resource (apimachinery `pkg/api/errors/errors.go`)
    details = _details(kind, name, kind.kind)
    details["causes"] = [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes]
    # in the words of apiserver's `pkg/admission/plugin/webhook/errors/statuserror.go`
    denied = f'admission webhook "{webhook}" denied the request: ' if webhook else ""
    return Refused(422, "Invalid", f'{denied}{kind.qualified} "{name}" is invalid: {why}', details)


def not_found(kind: Kind, name: str) -> Refused:
    """Return 404 for an object that does not exist."""
    return Refused(404, "NotFound", f'{kind.resource} "{name}" not found', _details(kind, name))


def already_exists(kind: Kind, name: str) -> Refused:
    """Return 409 for a create of an object that exists."""
    return Refused(409, "AlreadyExists", f'{kind.resource} "{name}" already exists', _details(kind, name))


def conflict(kind: Kind, name: str, why: str) -> Refused:
    """Return 409: the request was made against another state."""
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return Refused(409, "Conflict", message, _details(kind, name))


def other_uid(kind: Kind, name: str, asked: str, found: str) -> Refused:
    """Return 409 for a request about an earlier object of the same name."""
    # the words of `Preconditions.Check` (apiserver `pkg/storage/interfaces.go`)
    return conflict(kind, name, f"Precondition failed: UID in precondition: {asked}, UID in object meta: {found}")


def modified(kind: Kind, name: str) -> Refused:
    """Return 409 for a stale resourceVersion."""
    # apiserver's `OptimisticLockErrorMsg` (`pkg/registry/generic/registry/store.go`), to the letter
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, why)


def forbidden(kind: Kind, name: str, why: str) -> Refused:
    """Return 403: a rule of admission refuses it, not a field."""
    return Refused(403, "Forbidden", f'{kind.resource} "{name}" is forbidden: {why}', _details(kind, name))


def too_large() -> Refused:
    """Return the error for an object beyond the limit of an object, in etcd's words."""
    return Refused(413, "RequestEntityTooLarge", "etcdserver: request is too large")


def bad_request(message: str) -> Refused:
    """Return 400: the request itself is malformed."""
    return Refused(400, "BadRequest", message)


def no_subresource(kind: Kind, subresource: str) -> Refused:
    """Return 404 for a subresource that the kind does not have."""
    return Refused(404, "NotFound", f"the server could not find the requested resource ({kind.resource}/{subresource})")


def not_allowed(message: str) -> Refused:
    """Return 405: the request is not allowed now, or in this form."""
    return Refused(405, "MethodNotAllowed", message)


def unsupported_media(known: Sequence[str]) -> Refused:
    """Return 415 for a patch of a form that the kind does not take."""
    listed = ", ".join(known)
    # apiserver's words (`pkg/endpoints/handlers/negotiation/errors.go`)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return Refused(415, "UnsupportedMediaType", message)


def too_many_requests(kind: Kind, name: str, message: str, cause: str, why: str, retry_s: int = 0) -> Refused:
    """Return 429: the request may succeed later."""
    details = _details(kind, name) | {"causes": [{"reason": cause, "message": why}]}
    # 0 is left out, as Go's `omitempty` leaves it out
    if retry_s:
        details["retryAfterSeconds"] = retry_s
    return Refused(429, "TooManyRequests", message, details)


def other_revision(kind: Kind, name: str, asked: str, found: str) -> Refused:
    """Return 409 for a request about an earlier version of the object."""
    why = f"Precondition failed: ResourceVersion in precondition: {asked}, ResourceVersion in object meta: {found}"
    return conflict(kind, name, why)


def unknown_kind(kind: object, api_version: object = "") -> Refused:
    """Return 404 for an unknown kind."""
    if api_version:
        return Refused(404, "NotFound", f'no matches for kind "{kind}" in version "{api_version}"')
    return Refused(404, "NotFound", f'no matches for kind "{kind}"')


def _details(kind: Kind, name: str, what: str = "") -> Object:
    return {"name": name, "group": kind.group, "kind": what or kind.plural}


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
