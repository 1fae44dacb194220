"""fieldValidation: what to do about fields that a kind does not have."""

from __future__ import annotations

from typing import Final

from pumice.actors.gateway.problems import bad_request
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.query import Form
from pumice.actors.gateway.site import Site
from pumice.cluster.api import schema
from pumice.cluster.api.kinds import Kind
from pumice.core.objects.metadata import Object, section

APPLY: Final = "apply"


def fitting(
    site: Site, exchange: Exchange, row: Kind, obj: Object, form: Form, *, patch: str = ""
) -> tuple[Object, list[str]]:
    """The object without fields that its kind does not have, and what to warn of; `patch`: its form, if it is one.

    Raises ApiError (400) when the client wants no field passed over (Strict), and for an apply always. Fields that the
    text says twice are looked for only when the client asks for validation by name: that is a second reading of it.
    """
    shape = schema.shape_of_kind(row.group, row.version, row.kind, site.kinds.schema(row.key))
    if patch == APPLY and (places := schema.misplaced_fields(obj, shape)):
        raise bad_request(_untyped(row, obj, [path for path, _ in places]))
    # what is applied was gone through just now; most that is not patched is told to be sound by its compiled type
    sound = patch == APPLY or (not patch and schema.is_described(obj, row.group, row.version, row.kind))
    unknown = [] if sound else schema.unknown_fields(obj, shape, patch=bool(patch))
    found = unknown + (schema.duplicate_fields(exchange.json_text) if form in ("Strict", "Warn") else [])
    if found and form == "Strict":
        raise bad_request(f"strict decoding error: {', '.join(found)}")
    kept = schema.pruned(obj, shape) if unknown else obj
    return kept, [] if form == "Ignore" else found


def demand_type(applied: Object, api_version: str) -> None:
    """What is applied says of which kind it is, as in Kubernetes. Raises ApiError (400)."""
    if not applied.get("apiVersion"):
        why = "Incorrect version specified in apply patch. Specified patch version: , expected:"
        raise bad_request(f"{why} {api_version}")
    if not applied.get("kind"):
        raise bad_request("failed to create typed patch object: the patch states no kind")


def _untyped(row: Kind, obj: Object, paths: list[str]) -> str:
    """What Kubernetes' field manager says of an applied object that is not of its type."""
    meta = section(obj, "metadata")
    name = "/".join(each for each in (meta.get("namespace"), meta.get("name")) if each)
    found = [f".{path}: field not declared in schema" for path in paths]
    told = found[0] if len(found) == 1 else "\n  ".join(("errors:", *found))
    return f"failed to create typed patch object ({name}; {row.api_version}, Kind={row.kind}): {told}"
