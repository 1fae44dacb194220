"""Kubernetes' Status bodies."""

from __future__ import annotations

from typing import Any

from core.messages.replies import Refused

Object = dict[str, Any]


def failure(refused: Refused) -> Object:
    """The Status of a refusal."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": refused.message,
        "reason": refused.reason,
        **({"details": dict(refused.details)} if refused.details else {}),
        "code": refused.code,
    }


def success(details: Object | None = None, code: int = 200) -> Object:
    """The Status of something done that has no object to show; `code` is left out when it is 200."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        status["details"] = details
    return status if code == 200 else {**status, "code": code}
