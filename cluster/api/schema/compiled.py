"""The schema table compiled into msgspec types, a kind at its first object."""

from __future__ import annotations

from functools import cache
from types import GenericAlias
from typing import Annotated, Any, Final

import msgspec

from pumice.cluster.api.schema.model import element
from pumice.cluster.api.schema.table import flat_fields, is_message, message, of_kind

_METADATA: Final = "meta.v1.ObjectMeta"
_TIME: Final = r"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$"
_QUANTITY: Final = r"^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?\d+|[KMGTPE]i|[numkMGTPE])?\s*$"
_BASE64: Final = r"^[A-Za-z0-9+/\s]*(={1,2}\s*)?$"

_SCALARS: Final[dict[str, Any]] = {
    "string": str,
    "boolean": bool,
    "int32": Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)],
    "int64": Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    "double": float,
    "byte": Annotated[str, msgspec.Meta(pattern=_BASE64)],
    "Quantity": Annotated[str, msgspec.Meta(pattern=_QUANTITY)] | int | float,
    "IntOrString": int | str,
    "Time": Annotated[str, msgspec.Meta(pattern=_TIME)],
    "MicroTime": Annotated[str, msgspec.Meta(pattern=_TIME)],
    "Duration": str,
    "FieldsV1": dict[str, Any],
}
_FREE: Final = ("apiextensions.v1.JSONSchemaProps",)
"""Holds itself, and has rules of its own (`pumice.cluster.api.definitions.structure`)."""


def is_described(obj: dict[str, Any], group: str, version: str, kind: str) -> bool:
    """Whether every field of an object is one that its kind has, and of its type: a short way to see that nothing is
    wrong. False says only that somebody has to look.
    """
    try:
        msgspec.convert(obj, type_of_kind(group, version, kind, closed=True))
    except msgspec.ValidationError:
        return False
    return of_kind(group, version, kind) is not None


@cache
def type_of_kind(group: str, version: str, kind: str, *, closed: bool = False) -> Any:
    """The type of a kind's objects; of one that nobody described only the metadata is known. `closed`: every field is
    one that is described.
    """
    found = of_kind(group, version, kind)
    if found is None:
        return msgspec.defstruct("Metadata", [("metadata", _struct(_METADATA, closed) | None, None)], gc=False)
    return _struct(found.name, closed)


@cache
def _struct(name: str, closed: bool) -> Any:
    """The type of a message: every field may be left out; one that is not described may hold anything, or is none that
    there may be (`closed`).
    """
    if name in _FREE:
        return Any
    fields = flat_fields(name)
    names = {f"f{number}": field for number, field in enumerate(fields)}
    types = [(own, _type(fields[field].type, closed) | None, None) for own, field in names.items()]
    strict = closed and not message(name).open
    return msgspec.defstruct(name.replace(".", "_"), types, rename=names, gc=False, forbid_unknown_fields=strict)


def _type(type_: str, closed: bool) -> Any:
    inner = element(type_)
    if inner != type_:
        below: Any = _type(inner, closed)
        return GenericAlias(dict, (str, below)) if type_.startswith("{") else GenericAlias(list, (below,))
    return _struct(type_, closed) if is_message(type_) else _SCALARS.get(type_, object)
