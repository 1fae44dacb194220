"""Requests for certificates."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

_DER = b"\x30\x03\x02\x01\x00"
PEM = f"-----BEGIN CERTIFICATE REQUEST-----\n{b64encode(_DER).decode()}\n-----END CERTIFICATE REQUEST-----\n"


def certificate_request(name: str = "r", **spec: Any) -> dict[str, Any]:
    """One that nobody could sign, but whose form is right."""
    asked = {"request": b64encode(PEM.encode()).decode(), "signerName": "x.io/y", "usages": ["client auth"], **spec}
    meta = {"name": name}
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": meta,
        "spec": asked,
    }
