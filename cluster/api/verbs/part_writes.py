"""Subresources under which one part of an object is written: which, and what they make of the object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pumice.cluster.api.admission import certificate_requests, ephemeral_containers, resizes
from pumice.cluster.api.refusals import Cause
from pumice.core.objects.metadata import Object

RESIZE: Final = "resize"
PartWrite = Callable[[Object, Object, str], tuple[Object, list[Cause]]]
"""Of the stored object, the given one, and the time as text: the new object, and what is wrong with it."""

PART_WRITES: Final[dict[tuple[str, str], PartWrite]] = {
    ("CertificateSigningRequest", "approval"): certificate_requests.approve,
    ("CertificateSigningRequest", "status"): certificate_requests.report,
    ("Pod", "ephemeralcontainers"): ephemeral_containers.write,
    ("Pod", RESIZE): resizes.write,
}
"""By the key of the kind and the subresource."""
