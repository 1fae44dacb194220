# SPDX-License-Identifier: Apache-2.0
"""Form of an answer, from the Accept header.

Protobuf is asked for by client-go together with JSON, and JSON satisfies it; protobuf alone is refused.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from msgspec import Struct

from pumice.actors.gateway.problems import not_acceptable

_JSON: Final = ("application/json", "application/*", "*/*")
_YAML: Final = ("application/yaml", "text/yaml")
_METADATA: Final = ("PartialObjectMetadata", "PartialObjectMetadataList")
_VERSIONS: Final = ("v1", "v1beta1")


class Form(Struct, frozen=True, gc=False):
    """The form. `shape`: "" for the objects themselves, "Table" or "Metadata"; `version` of meta.k8s.io for those
    two.
    """

    shape: str = ""
    version: str = "v1"
    yaml: bool = False

    @property
    def content_type(self) -> str:
        """Return the header of the answer."""
        return "application/yaml" if self.yaml else "application/json"


PLAIN: Final = Form()


@lru_cache(maxsize=256)
def negotiate(accept: str, *, shapes: bool = True) -> Form:
    """Return the first form in the header that can be written. Raises ApiError (406) without one.

    Without `shapes` there is but the object itself: what has no metadata makes no table.
    """
    if not accept.strip():
        return PLAIN
    # The sort is stable: among equal weights the client's order decides.
    for media, parameters in sorted(map(_parse, accept.split(",")), key=_weight):
        form = _form(media, parameters)
        if form is not None and (shapes or not form.shape):
            return form
    raise not_acceptable()


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
    if media not in _JSON + _YAML:
        return None
    shape = parameters.get("as", "")
    yaml = media in _YAML
    if not shape:
        return Form(yaml=yaml)
    if parameters.get("g") != "meta.k8s.io" or parameters.get("v") not in _VERSIONS:
        return None
    if shape == "Table":
        return Form("Table", parameters["v"], yaml)
    return Form("Metadata", parameters["v"], yaml) if shape in _METADATA else None


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
