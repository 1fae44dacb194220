# SPDX-License-Identifier: Apache-2.0
"""Form of an answer, from the Accept header.

The client's order decides, as with a kube-apiserver: JSON, YAML, and protobuf for the kinds that have it, which are
Kubernetes' own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal

from msgspec import Struct

from pumice.actors.gateway.problems import not_acceptable

JSON: Final = "application/json"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_JSON: Final = (JSON, "application/*", "*/*")
_YAML: Final = ("application/yaml", "text/yaml")
_METADATA: Final = ("PartialObjectMetadata", "PartialObjectMetadataList")
_VERSIONS: Final = ("v1", "v1beta1")
_IN_PROTOBUF: Final = {"every": ("", "Metadata"), "metadata": ("Metadata",), "none": ()}


class Form(Struct, frozen=True, gc=False):
    """The form. `shape`: "" for the objects themselves, "Table" or "Metadata"; `version` of meta.k8s.io for those
    two. `media`: the type of the answer.
    """

    shape: str = ""
    version: str = "v1"
    media: str = JSON

    @property
    def is_protobuf(self) -> bool:
        """Return whether the answer is in protobuf."""
        return self.media == PROTOBUF


PLAIN: Final = Form()
Protobuf = Literal["every", "metadata", "none"]
"""Shapes that can be written in protobuf: metadata can for every kind."""


@lru_cache(maxsize=256)
def negotiate(accept: str, *, shapes: bool = True, protobuf: Protobuf = "metadata") -> Form:
    """Return the first form in the header that can be written. Raises ApiError (406) without one.

    Without `shapes` there is but the object itself: what has no metadata makes no table.
    """
    if not accept.strip():
        return PLAIN
    # The sort is stable: among equal weights the client's order decides.
    for media, parameters in sorted(map(_parse, accept.split(",")), key=_weight):
        form = _form(media, parameters)
        if form is None or (form.shape and not shapes):
            continue
        if not form.is_protobuf or form.shape in _IN_PROTOBUF[protobuf]:
            return form
    raise not_acceptable((JSON, _YAML[0], PROTOBUF) if protobuf == "every" else (JSON, _YAML[0]))


@lru_cache(maxsize=256)
def discovery_version(accept: str) -> str:
    """Return the version of aggregated discovery that is asked for first; "" for the plain style."""
    for media, parameters in sorted(map(_parse, accept.split(",")), key=_weight):
        if media in _JSON and parameters.get("as") == "APIGroupDiscoveryList":
            if parameters.get("g") == "apidiscovery.k8s.io" and parameters.get("v") in ("v2", "v2beta1"):
                return parameters["v"]
        # JSON as it is before the aggregated form: the client prefers the plain style.
        elif media in _JSON:
            return ""
    return ""


def _form(media: str, parameters: dict[str, str]) -> Form | None:
    if media in _JSON:
        media = JSON
    elif media in _YAML:
        media = _YAML[0]
    elif media != PROTOBUF:
        return None
    shape = parameters.get("as", "")
    if not shape:
        return Form(media=media)
    if parameters.get("g") != "meta.k8s.io" or parameters.get("v") not in _VERSIONS:
        return None
    if shape == "Table":
        return Form("Table", parameters["v"], media)
    return Form("Metadata", parameters["v"], media) if shape in _METADATA else None


def _parse(part: str) -> tuple[str, dict[str, str]]:
    media, *rest = part.strip().split(";")
    pairs = (pair.strip().partition("=") for pair in rest)
    return media.strip().lower(), {name: value for name, _, value in pairs}


def _weight(parsed: tuple[str, dict[str, str]]) -> float:
    try:
        return -float(parsed[1].get("q", "1"))
    except ValueError:
        # A weight that cannot be read counts as 0: it comes last, and is not refused.
        return 0.0
