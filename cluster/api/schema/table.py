"""The schema table: read from its data file at the first question, never at import."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import msgspec
from msgspec import Struct

from pumice.cluster.api.schema.model import Field, SchemaMessage


class _Entry(Struct, frozen=True):
    fields: tuple[Field, ...]
    atomic: bool = False
    open: bool = False
    doc: str = ""


class _Data(Struct, frozen=True):
    kinds: dict[str, str]
    messages: dict[str, msgspec.Raw]


@cache
def _data() -> _Data:
    text = resources.files("pumice.cluster.api.schema").joinpath("kinds.json").read_bytes()
    return msgspec.json.decode(text, type=_Data)


@cache
def message(name: str) -> SchemaMessage:
    """A message by its name in the table, such as `core.v1.PodSpec`. Raises KeyError for one that is not there."""
    entry = msgspec.json.decode(_data().messages[name], type=_Entry)
    return SchemaMessage(name, entry.fields, entry.atomic, entry.open, entry.doc)


def of_kind(group: str, version: str, kind: str) -> SchemaMessage | None:
    """The message of a kind; None for one that is not described (a user's own)."""
    name = _data().kinds.get(f"{group}/{version}/{kind}")
    return message(name) if name else None


def of_type(api_version: Any, kind: Any) -> SchemaMessage | None:
    """The message of an object's apiVersion and kind, whatever their types."""
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return None
    group, slash, version = api_version.rpartition("/")
    return of_kind(group if slash else "", version, kind)


@cache
def flat_fields(name: str) -> dict[str, Field]:
    """The fields of a message's JSON by name: those of embedded structs stand among them."""
    found: dict[str, Field] = {}
    for field in message(name).fields:
        if "i" in field.flags:
            found.update(flat_fields(field.type))
        else:
            found[field.name] = field
    return found


def is_message(type_: str) -> bool:
    """Whether a type (without list or map marks) names a message."""
    return "." in type_
