"""AdmissionReview: what a webhook is sent, and what its answer says (source: Kubernetes' `webhook/request`)."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from pumice.actors.gateway.webhooks.hooks import AdmissionRequest, told
from pumice.cluster.api.fields import is_list, is_mapping, section
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object

VERSION: Final = "admission.k8s.io/v1"
_LEAST: Final = 400


class BadAnswerError(Exception):
    """An answer that says nothing that can be understood."""


@dataclass(frozen=True, slots=True)
class HookVerdict:
    """What a webhook says: a refusal, or operations to be done with the object; and warnings."""

    refused: Refused | None = None
    operations: tuple[Any, ...] = ()
    warnings: tuple[str, ...] = ()


def uid_of_review(request: AdmissionRequest, hook: str, number: int) -> str:
    """What tells one review from another."""
    said = f"{hook} {request.operation} {request.row.key} {request.namespace}/{request.name} {number}"
    mark = blake2b(said.encode(), digest_size=16).hexdigest()
    return f"{mark[:8]}-{mark[8:12]}-{mark[12:16]}-{mark[16:20]}-{mark[20:]}"


def review(request: AdmissionRequest, uid: str) -> bytes:
    """What is sent."""
    asked = {"uid": uid, **told(request), "object": request.new, "oldObject": request.old}
    return json.dumps({"kind": "AdmissionReview", "apiVersion": VERSION, "request": asked}).encode()


def verdict(body: bytes, uid: str, hook: str) -> HookVerdict:
    """What an answer says. Raises BadAnswerError."""
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadAnswerError(f"couldn't get version/kind; json parse error: {error}") from error
    if not is_mapping(answer) or answer.get("kind") != "AdmissionReview" or answer.get("apiVersion") != VERSION:
        raise BadAnswerError(f"expected webhook response of {VERSION}, Kind=AdmissionReview")
    response = answer.get("response")
    if not is_mapping(response):
        raise BadAnswerError("webhook response was absent")
    if response.get("uid") != uid:
        raise BadAnswerError(f'expected response.uid="{uid}"')
    given: Any = response.get("warnings")
    warnings = tuple(map(str, given)) if is_list(given) else ()
    if response.get("allowed") is not True:
        return HookVerdict(_refusal(section(response, "status"), hook), warnings=warnings)
    return HookVerdict(operations=_operations(response), warnings=warnings)


def _refusal(status: Object, hook: str) -> Refused:
    message, reason, code = status.get("message"), status.get("reason") or "", status.get("code")
    denied = f'admission webhook "{hook}" denied the request'
    why = f": {message}" if message else f": {reason}" if reason else " without explanation"
    number = code if isinstance(code, int) and _LEAST <= code < 600 else _LEAST
    details: Any = status.get("details")
    return Refused(number, str(reason), denied + why, details if is_mapping(details) else {})


def _operations(response: Object) -> tuple[Any, ...]:
    patch = response.get("patch")
    if not patch:
        return ()
    if response.get("patchType") != "JSONPatch":
        raise BadAnswerError("webhook returned response.patch but not response.patchType=JSONPatch")
    try:
        operations: Any = json.loads(base64.b64decode(str(patch), validate=True))
    except (ValueError, binascii.Error, RecursionError) as error:
        raise BadAnswerError(f"the patch cannot be read: {error}") from error
    if not is_list(operations):
        raise BadAnswerError("the patch is not a list of operations")
    return tuple(operations)
