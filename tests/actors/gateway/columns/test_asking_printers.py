"""Requests for certificates, and kinds about API servers themselves, as kubectl prints them."""

from typing import Any

import pytest

from pumice.actors.gateway.columns.printers import printer_of

NOW = 1_000.0
META = {"name": "x", "creationTimestamp": "1970-01-01T00:15:00Z"}
ROWS: list[tuple[str, dict[str, Any], list[Any]]] = [
    (
        "CertificateSigningRequest",
        {"spec": {"signerName": "x.io/y", "username": "me", "expirationSeconds": 86400}},
        ["100s", "x.io/y", "me", "24h", "Pending"],
    ),
    (
        "CertificateSigningRequest",
        {"status": {"conditions": [{"type": "Approved"}, {"type": "Failed"}], "certificate": "YQ=="}},
        ["100s", "<none>", "", "<none>", "Approved,Failed,Issued"],
    ),
    (
        "FlowSchema",
        {"spec": {"matchingPrecedence": 7, "priorityLevelConfiguration": {"name": "p"}}},
        ["p", 7, None, "100s"],
    ),
]


@pytest.mark.parametrize(("kind", "more", "cells"), ROWS)
def test_cells(kind: str, more: dict[str, Any], cells: list[Any]) -> None:
    assert printer_of(kind).cells({"metadata": META, **more}, NOW) == ["x", *cells]
