# SPDX-License-Identifier: Apache-2.0
"""The schema table: a message is a struct of Kubernetes' Go sources or an object of a Volcano CRD.

The data file (150 kB) is read once, in half a millisecond; each message of it on first use.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct


class Rules(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Attributes that only few fields have.

    `list_type` is atomic, set or map (empty: atomic), `keys` those of a list of type map with the values that stand in
    for absent ones in `key_defaults`; `merge_key` and `strategy` belong to strategic merge patches. The rest is what a
    value must satisfy, where the kind says so in its CRD, and a sentence for `kubectl explain`.
    """

    list_type: str = ""
    keys: tuple[str, ...] = ()
    merge_key: str = ""
    strategy: tuple[str, ...] = ()
    default: Any = None
    enum: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    pattern: str = ""
    doc: str = ""


NO_RULES = Rules()


class Field(Struct, frozen=True, array_like=True):
    """One field: JSON name, type, protobuf number (0: not on that wire), flags, rules.

    A type is a scalar (`string`, `boolean`, `int32`, `int64`, `double`, `byte` for base64), one of Kubernetes' special
    types (`Quantity`, `IntOrString`, `Time`, `MicroTime`, `Duration`, `FieldsV1`, `RawExtension`, `JSON`,
    `SchemaOrBool`, `SchemaOrArray`, `SchemaOrStrings`), the name of a message, or one of these behind `[]` (list), `{}`
    (map from strings) or `@` (a list that is a message of its own on the protobuf wire); such marks nest.

    Flags: `*` a Go pointer, `o` left out when empty, `z` left out when zero, `r` required, `i` the fields of the named
    message stand in its holder's JSON, `a` merged as one whole, `x` takes fields that are not described.
    """

    name: str
    type: str
    number: int = 0
    flags: str = ""
    rules: Rules = NO_RULES

    @property
    def many(self) -> str:
        """Return `list`, `map`, or ""."""
        return {"[": "list", "@": "list", "{": "map"}.get(self.type[0], "")

    @property
    def item(self) -> str:
        """Return the type of an element of a list or map; the field's own type otherwise."""
        return element(self.type)

    @property
    def required(self) -> bool:
        """Return whether the API reference calls the field required."""
        return "r" in self.flags


class SchemaMessage(Struct, frozen=True):
    """A message of the data file; `atomic` ones are merged as a whole, `open` ones take any field."""

    name: str
    fields: tuple[Field, ...]
    atomic: bool = False
    open: bool = False
    doc: str = ""

    @property
    def own(self) -> str:
        """Return the kind or type without its group and version."""
        return self.name.rsplit(".", 1)[-1]


def element(type_: str) -> str:
    """Return the type of a list's or map's elements."""
    return {"[": type_[2:], "{": type_[2:], "@": type_[1:]}.get(type_[0], type_)


class _Entry(Struct, frozen=True):
    fields: tuple[Field, ...]
    atomic: bool = False
    open: bool = False
    doc: str = ""


class _Data(Struct, frozen=True):
    kinds: dict[str, str]
    resources: msgspec.Raw
    # raw: only the messages that are asked for are decoded
    messages: dict[str, msgspec.Raw]


@cache
def _data() -> _Data:
    text = files("pumice.cluster.api.schema").joinpath("kinds.json").read_bytes()
    return msgspec.json.decode(text, type=_Data)


def resources() -> msgspec.Raw:
    """Return the rows of the served kinds, as JSON: `pumice.cluster.api.kinds` reads them."""
    return _data().resources


@cache
def message(name: str) -> SchemaMessage:
    """Return a message by its name in the table, such as "core.v1.PodSpec". Raises KeyError for an unknown name."""
    entry = msgspec.json.decode(_data().messages[name], type=_Entry)
    return SchemaMessage(name, entry.fields, entry.atomic, entry.open, entry.doc)


def of_kind(group: str, version: str, kind: str) -> SchemaMessage | None:
    """Return the message of a kind; None for an undescribed one (a user's own)."""
    name = _data().kinds.get(f"{group}/{version}/{kind}")
    return message(name) if name else None


def of_type(api_version: object, kind: object) -> SchemaMessage | None:
    """Return the message of an object's apiVersion and kind, whatever their types."""
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return None
    group, slash, version = api_version.rpartition("/")
    return of_kind(group if slash else "", version, kind)


@cache
def flat_fields(name: str) -> dict[str, Field]:
    """Return the fields of a message's JSON by name, with those of embedded structs."""
    found: dict[str, Field] = {}
    for field in message(name).fields:
        if "i" in field.flags:
            found.update(flat_fields(field.type))
        else:
            found[field.name] = field
    return found


def enum_of(name: str, field: str, *, declared: bool = False) -> tuple[str, ...]:
    """Return the values that a field of a message may have: sorted, as most of Kubernetes' validation names them, or in
    the order in which its source declares them. Raises KeyError for a field without an enum.
    """
    if enum := flat_fields(name)[field].rules.enum:
        return enum if declared else tuple(sorted(enum))
    # with an empty enum, admission would refuse every value
    raise KeyError(f"{name}.{field} has no enum")


def is_message(type_: str) -> bool:
    """Return whether a type (without list or map marks) names a message."""
    return "." in type_
