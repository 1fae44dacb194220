# SPDX-License-Identifier: Apache-2.0
"""Shapes of values for merging and checking: a scalar, a list and its sort, a map and its values.

One view on two sources: the schema table (built-in kinds) and the `openAPIV3Schema` of a user's definition.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any, Final, Literal

from pumice.cluster.api.schema.table import NO_RULES, Rules, element, flat_fields, is_message, message, of_kind
from pumice.core.cached import cached
from pumice.core.objects.metadata import Object, is_mapping

Sort = Literal["scalar", "list", "map", "any"]
_SCALARS: Final = {
    "boolean": "boolean",
    "int32": "integer",
    "int64": "integer",
    "double": "number",
    "Quantity": "quantity",
    "IntOrString": "integer or string",
}


class Shape:
    """A value's shape. This base class describes free-form JSON.

    `any` is free-form JSON: a map of anything, lists and scalars as wholes. A list's `list_type` is atomic, set or map,
    `keys` those of a list of maps. `atomic` maps have one owner as a whole; `closed` ones have no fields but the
    described ones. `default` stands in for an absent field; None for none. `scalar` names what a scalar must be:
    string, boolean, integer, number, quantity, "integer or string"; empty for one of any type. `null` is what a null
    in a map of such values means; None where it means nothing.
    """

    sort: Sort = "any"
    scalar: str = ""
    list_type: str = "atomic"
    keys: tuple[str, ...] = ()
    atomic: bool = False
    closed: bool = False
    default: Any = None
    null: str | None = None

    def named(self, field: str) -> Shape | None:
        """Return the shape of a described field; None for an undescribed one."""
        return None

    def names(self) -> Collection[str]:
        """Return the names of the described fields."""
        return ()

    def item(self) -> Shape:
        """Return the shape of a list's elements, or of a map's values under undescribed names."""
        return ANYTHING


ANYTHING = Shape()
_FREE = ("RawExtension", "JSON", "FieldsV1", "SchemaOrBool", "SchemaOrArray", "SchemaOrStrings")


class TypeShape(Shape):
    """The shape of a type of the schema table."""

    def __init__(self, type_: str, rules: Rules = NO_RULES, flags: str = "") -> None:
        self._type = type_
        struct = is_message(type_) and element(type_) == type_
        self.sort = "map" if struct or type_.startswith("{}") else "list" if type_[0] in "[@" else "scalar"
        self.scalar = _SCALARS.get(type_, "string") if self.sort == "scalar" else ""
        # Go has no null text: `labels: {a: }` is read as `labels: {a: ""}`.
        self.null = "" if type_ in ("string", "byte") else None
        self.list_type = rules.list_type or "atomic"
        self.keys = rules.keys
        self.default = rules.default
        self._struct = message(type_) if struct else None
        self.atomic = "a" in flags or (self._struct is not None and self._struct.atomic)
        self.closed = self._struct is not None and not self._struct.open

    def named(self, field: str) -> Shape | None:
        """Return the shape of a struct's field."""
        return self._named.get(field)

    # on demand: JSONSchemaProps holds itself, so that its shapes would have no end
    @cached
    def _named(self) -> dict[str, Shape]:
        return {name: _field_shape(self._type, name) for name in self.names()}

    def names(self) -> Collection[str]:
        """Return the names of the struct's fields."""
        return () if self._struct is None else flat_fields(self._type)

    def item(self) -> Shape:
        """Return the shape of the elements."""
        return self._item

    @cached
    def _item(self) -> Shape:
        return ANYTHING if self._struct is not None else shape_of_type(element(self._type))


@cache
def shape_of_type(type_: str) -> Shape:
    """Return the shape of a type of the schema table, without the rules of a field."""
    return ANYTHING if type_ in _FREE else TypeShape(type_)


@cache
def _field_shape(type_: str, name: str) -> Shape:
    field = flat_fields(type_)[name]
    return ANYTHING if field.type in _FREE else TypeShape(field.type, field.rules, field.flags)


class SchemaShape(Shape):
    """The shape that a definition's structural schema gives. `metadata` at its top is Kubernetes' own."""

    def __init__(self, schema: Object, *, top: bool = False) -> None:
        self._schema = schema
        self._top = top or bool(schema.get("x-kubernetes-embedded-resource"))
        kind: Any = schema.get("type")
        self.sort = "map" if kind == "object" else "list" if kind == "array" else "scalar"
        if self.sort == "scalar":
            either = bool(schema.get("x-kubernetes-int-or-string"))
            self.scalar = "integer or string" if either else kind if isinstance(kind, str) else ""
        self.list_type = schema.get("x-kubernetes-list-type") or "atomic"
        self.keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self.atomic = schema.get("x-kubernetes-map-type") == "atomic"
        self.default = schema.get("default")
        properties: Any = schema.get("properties")
        self._properties: Object = properties if is_mapping(properties) else {}
        self._named: dict[str, Shape | None] = {}
        more: Any = schema.get("additionalProperties")
        self._more: Any = more
        self.closed = self.sort == "map" and not more and not schema.get("x-kubernetes-preserve-unknown-fields")

    def named(self, field: str) -> Shape | None:
        """Return the shape of a property."""
        if self._top and field in ("apiVersion", "kind"):
            return shape_of_type("string")
        if self._top and field == "metadata":
            return shape_of_type("meta.v1.ObjectMeta")
        if field not in self._properties:
            return None
        if field not in self._named:
            found: Any = self._properties[field]
            self._named[field] = shape_of_schema(found) if is_mapping(found) else None
        return self._named[field]

    def names(self) -> Collection[str]:
        """Return the names of the properties."""
        return self._properties

    def item(self) -> Shape:
        """Return the shape of a list's elements, or of additional properties."""
        return self._item

    @cached
    def _item(self) -> Shape:
        inner: Any = self._schema.get("items") if self.sort == "list" else self._more
        return shape_of_schema(inner) if is_mapping(inner) else ANYTHING


def shape_of_schema(schema: Object, *, top: bool = False) -> Shape:
    """Return the shape of a value that an openAPIV3Schema describes; `top` for that of a whole object."""
    if top or schema.get("type") in ("object", "array"):
        return SchemaShape(schema if schema.get("type") else {**schema, "type": "object"}, top=top)
    if schema.get("x-kubernetes-int-or-string") or schema.get("type"):
        return SchemaShape(schema)
    return ANYTHING


def shape_of_kind(group: str, version: str, kind: str, schema: Object | None = None) -> Shape:
    """Return the shape of a kind's objects: that of a definition's schema where one is given; free-form without any."""
    if schema is not None:
        return shape_of_schema(schema, top=True)
    found = of_kind(group, version, kind)
    return ANYTHING if found is None else shape_of_type(found.name)


def field_shape(shape: Shape, name: str) -> Shape:
    """Return the shape of a map's entry, described or not."""
    return shape.named(name) or shape.item()
