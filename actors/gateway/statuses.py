"""Kubernetes' Status bodies."""

from __future__ import annotations

from typing import Final

from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object

NOT_FOUND: Final = 404


def failure(refused: Refused, token: str = "") -> Object:
    """The Status of a refusal; `token`: by it a list can go on."""
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
    """The Status of something done that has no object to show; `code` is left out when it is 200."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        status["details"] = details
    return status if code == 200 else {**status, "code": code}
