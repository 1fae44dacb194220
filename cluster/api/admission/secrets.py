# SPDX-License-Identifier: Apache-2.0
"""Secrets: `stringData` becomes `data`, and the type is Opaque by default (source: Kubernetes' strategy)."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode

from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.refusals import Cause, forbidden_field, invalid_value
from pumice.core.objects.metadata import Object, section


def default(secret: Object, _lookup: Lookup) -> None:
    """Move `stringData`, which is write-only, into `data`."""
    secret["type"] = secret.get("type") or "Opaque"
    texts: Object = secret.pop("stringData", None) or {}
    if texts:
        written = {name: b64encode(str(text).encode()).decode() for name, text in texts.items()}
        secret["data"] = {**section(secret, "data"), **written}


def validate(secret: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of data that are not base64."""
    return [
        invalid_value(f"data[{name}]", value, "must be in base64")
        for name, value in section(secret, "data").items()
        if not _is_base64(value)
    ]


def validate_update(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed secret. The type is fixed; the data of an immutable secret is fixed too."""
    default(new, lookup)
    if new["type"] != (old.get("type") or "Opaque"):
        return [invalid_value("type", new["type"], "field is immutable")]
    if old.get("immutable") and (new.get("data") != old.get("data") or not new.get("immutable")):
        return [forbidden_field("data", "field is immutable when `immutable` is set")]
    return validate(new, lookup)


def _is_base64(value: object) -> bool:
    try:
        b64decode(str(value or ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
