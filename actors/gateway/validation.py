"""fieldValidation: what to do about fields that a kind does not have."""

from __future__ import annotations

from actors.api import schema
from actors.api.kinds import Kind
from actors.gateway.problems import bad_request
from actors.gateway.query import Form
from actors.gateway.site import Site
from core.objects.metadata import Object


def warnings_of(site: Site, row: Kind, obj: Object, form: Form, *, patch: bool = False) -> list[str]:
    """Warnings for the answer. Raises ApiError (400) when the client wants none passed over (Strict)."""
    if form == "Ignore":
        return []
    shape = schema.shape_of_kind(row.group, row.version, row.kind, site.kinds.schema(row.key))
    found = schema.unknown_fields(obj, shape, patch=patch)
    if found and form == "Strict":
        raise bad_request(f"strict decoding error: {', '.join(found)}")
    return found
