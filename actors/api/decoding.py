"""From a request's bytes to plain data, or the refusal that says why not."""

from __future__ import annotations

from typing import Any, Final, cast

from actors.api import refusals
from core.messages.replies import Refused
from core.objects.metadata import Object
from storage.codec import unpack
from storage.errors import CodecError

_NIL: Final = b"\xc0"


def decoded(blob: bytes) -> Object | Refused:
    """A mapping as it came; a patch's nulls mean removal and are kept."""
    try:
        obj = unpack(blob)
    except CodecError as error:
        return refusals.bad_request(f"the object is not MessagePack: {error}")
    if not isinstance(obj, dict):
        return refusals.bad_request(f"the object is not a mapping but {type(obj).__name__}")
    return cast("Object", obj)


def decoded_object(blob: bytes) -> Object | Refused:
    """An object: a null in it is an absent field, as in Kubernetes."""
    obj = decoded(blob)
    # looking for nulls is dear, so only where the bytes could hold any
    return _without_nulls(obj) if _NIL in blob and isinstance(obj, dict) else obj


def name_of(obj: Object) -> str:
    """metadata.name of an object that nobody has checked yet; empty when there is none."""
    meta = obj.get("metadata")
    name = cast("dict[str, Any]", meta).get("name") if isinstance(meta, dict) else None
    return name if isinstance(name, str) else ""


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _without_nulls(item) for key, item in items if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value
