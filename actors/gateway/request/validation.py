"""fieldValidation: what to do about fields that a kind does not have."""

from __future__ import annotations

from actors.api import schema
from actors.api.kinds import Kind
from actors.gateway.problems import bad_request
from actors.gateway.request.exchange import Exchange
from actors.gateway.request.query import Form
from actors.gateway.site import Site
from core.objects.metadata import Object


def fitting(
    site: Site, exchange: Exchange, row: Kind, obj: Object, form: Form, *, patch: bool = False
) -> tuple[Object, list[str]]:
    """The object without fields that its kind does not have, and what to warn of.

    Raises ApiError (400) when the client wants no field passed over (Strict). Fields that the text says twice are
    looked for only when the client asks for validation by name: that is a second reading of the text.
    """
    shape = schema.shape_of_kind(row.group, row.version, row.kind, site.kinds.schema(row.key))
    unknown = schema.unknown_fields(obj, shape, patch=patch)
    found = unknown + (schema.duplicate_fields(exchange.json_text) if form in ("Strict", "Warn") else [])
    if found and form == "Strict":
        raise bad_request(f"strict decoding error: {', '.join(found)}")
    kept = schema.pruned(obj, shape) if unknown else obj
    return kept, [] if form == "Ignore" else found
