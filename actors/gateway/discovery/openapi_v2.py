"""/openapi/v2: a document that describes nothing.

kubectl asks for it where the third version has no answer: for `kind: List`, and for group versions that do not exist.
From an empty document it concludes that there is nothing to check, and the server checks what it is sent anyway;
without a document it gives up with an error that says nothing about the cause.
"""

from __future__ import annotations

from typing import Any, Final

from actors.kube.release import RELEASE

ASKED: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""What is answered: Go cannot read the name by which it asks."""

_SWAGGER: Final = "2.0"
_TITLE: Final = "Pumice"
_TEXT: Final = 2
"""The wire type of texts and messages."""


def as_protobuf() -> bytes:
    """gnostic's Document: swagger is field 1, info 2, paths 8; of info, title is 1 and version 2."""
    info = _field(1, _TITLE.encode()) + _field(2, RELEASE.encode())
    return _field(1, _SWAGGER.encode()) + _field(2, info) + _field(8, b"")


def as_json() -> dict[str, Any]:
    """The document for a person to read."""
    return {"swagger": _SWAGGER, "info": {"title": _TITLE, "version": RELEASE}, "paths": {}}


def _field(number: int, value: bytes) -> bytes:
    return bytes((number << 3 | _TEXT, len(value))) + value
