# SPDX-License-Identifier: Apache-2.0
"""The schema table compiled into msgspec types, a kind at its first object."""

from __future__ import annotations

from functools import cache
from types import GenericAlias
from typing import Annotated, Any, Final, Literal

import msgspec

from pumice.cluster.api.schema.table import NO_RULES, Rules, element, flat_fields, is_message, message, of_kind
from pumice.core.objects.metadata import Object

_METADATA: Final = "meta.v1.ObjectMeta"
PATTERNS: Final = {
    "time": r"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$",
    # Go's layout has the six digits, and reads no other number of them.
    "microtime": r"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}\.\d{6}([Zz]|[+-]\d{2}:\d{2})$",
    "quantity": r"^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?\d+|[KMGTPE]i|[numkMGTPE])?\s*$",
    "base64": r"^[A-Za-z0-9+/\s]*(={1,2}\s*)?$",
}
"""Forms of texts, by name."""

_SCALARS: Final[Object] = {
    "string": str,
    "boolean": bool,
    "int32": Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)],
    "int64": Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    "double": float,
    "byte": Annotated[str, msgspec.Meta(pattern=PATTERNS["base64"])],
    "Quantity": Annotated[str, msgspec.Meta(pattern=PATTERNS["quantity"])] | int | float,
    "IntOrString": int | str,
    "Time": Annotated[str, msgspec.Meta(pattern=PATTERNS["time"])],
    "MicroTime": Annotated[str, msgspec.Meta(pattern=PATTERNS["microtime"])],
    "Duration": str,
    "FieldsV1": Object,
}
_PLAIN: Final[Object] = {"string": str, "int32": int, "int64": int, "double": float}
_DEMANDED: Final[dict[str, tuple[str, ...]]] = {
    "apiextensions.v1.CustomResourceColumnDefinition": ("name", "type", "jsonPath"),
    "apiextensions.v1.CustomResourceDefinition": ("spec",),
    "apiextensions.v1.CustomResourceDefinitionVersion": ("name",),
    "core.v1.NodeSelector": ("nodeSelectorTerms",),
    "core.v1.NodeSelectorRequirement": ("key", "operator"),
    "core.v1.PodAffinityTerm": ("topologyKey",),
    "core.v1.PodSchedulingGate": ("name",),
    "core.v1.PreferredSchedulingTerm": ("weight", "preference"),
    "core.v1.Taint": ("key", "effect"),
    "core.v1.TopologySpreadConstraint": ("maxSkew", "topologyKey", "whenUnsatisfiable"),
    "core.v1.WeightedPodAffinityTerm": ("weight", "podAffinityTerm"),
    "meta.v1.LabelSelectorRequirement": ("key", "operator"),
    "meta.v1.ObjectMeta/meta.v1.OwnerReference": ("uid", "kind", "name"),
}
"""Fields that admission and readers take for given, by message, or by message within another. All other fields may
be left out: Go fills in a zero, and admission says what must not be zero.
"""
_FREE: Final = ("apiextensions.v1.JSONSchemaProps",)
"""Holds itself, and has rules of its own (`pumice.cluster.api.definitions.structure`)."""


def is_described(obj: Object, group: str, version: str, kind: str) -> bool:
    """Return whether every field of an object is known to its kind and has its type. This is the fast path to "no
    problem"; False only leads to the full check.
    """
    try:
        msgspec.convert(obj, type_of_kind(group, version, kind, closed=True))
    except msgspec.ValidationError:
        return False
    return of_kind(group, version, kind) is not None


def is_allowed(obj: Object, group: str, version: str, kind: str) -> bool:
    """Return whether the values of an object satisfy the rules of its kind's fields, its types given. This is the fast
    path to "no problem"; False only leads to the full check.
    """
    found = of_kind(group, version, kind)
    if found is None:
        return False
    try:
        msgspec.convert(obj, _ruled(found.name))
    except msgspec.ValidationError:
        return False
    return True


@cache
def _ruled(name: str) -> Any:
    """Return a type that knows only the fields of a message with rules, or under which there are some."""
    names, types = dict[str, str](), list[Any]()
    fields = flat_fields(name).values() if name not in _FREE else ()
    for field in sorted(fields, key=lambda each: not each.required):
        type_ = _ruled_value(field.type, field.rules)
        if type_ is object and not field.required:
            continue
        own = f"f{len(names)}"
        names[own] = field.name
        types.append((own, type_) if field.required else (own, type_ | None, None))
    return msgspec.defstruct(f"Ruled_{name.replace('.', '_')}", types, rename=names, gc=False) if names else object


def _ruled_value(type_: str, rules: Rules) -> Any:
    """Return the type of a value with rules; `object` without any."""
    inner = element(type_)
    if inner != type_:
        below: Any = _ruled_value(inner, NO_RULES)
        if type_.startswith("{"):
            return object if below is object else GenericAlias(dict, (str, below))
        listed = GenericAlias(list, (below,))
        least = rules.min_items
        return Annotated[listed, msgspec.Meta(min_length=least)] if least else object if below is object else listed
    if is_message(type_):
        return _ruled(type_)
    if rules.enum:
        return Literal[rules.enum]
    bounds = {"ge": rules.minimum, "le": rules.maximum, "min_length": rules.min_length, "max_length": rules.max_length}
    given: Object = {name: int(bound) for name, bound in bounds.items() if bound is not None}
    if rules.pattern:
        # Python's `$` stands before a last line end too, Go's does not
        given["pattern"] = f"{rules.pattern[:-1]}\\Z" if rules.pattern.endswith("$") else rules.pattern
    return Annotated[_PLAIN[type_], msgspec.Meta(**given)] if given else object


@cache
def type_of_kind(group: str, version: str, kind: str, *, closed: bool = False) -> Any:
    """Return the type of a kind's objects; of a kind without a schema only the metadata is known. `closed`: only
    described fields are allowed.
    """
    found = of_kind(group, version, kind)
    if found is None:
        return msgspec.defstruct("Metadata", [("metadata", _struct(_METADATA, closed))], gc=False)
    return _struct(found.name, closed, ("metadata",))


@cache
def _struct(name: str, closed: bool, demanded: tuple[str, ...] = ()) -> Any:
    """Return the type of a message. Every field that is not required may be left out; an undescribed field may hold
    anything, or is refused (`closed`).
    """
    if name in _FREE:
        return Any
    demanded = (*demanded, *_DEMANDED.get(name, ()))
    fields = flat_fields(name)
    # required fields come first: msgspec takes none behind a field that has a default
    names = {f"f{number}": field for number, field in enumerate(sorted(fields, key=lambda each: each not in demanded))}
    types: list[Any] = []
    for own, field in names.items():
        within = f"{name}/{fields[field].item}"
        type_ = _type(fields[field].type, closed, _DEMANDED.get(within, ()))
        types.append((own, type_) if field in demanded else (own, type_ | None, None))
    strict = closed and not message(name).open
    return msgspec.defstruct(name.replace(".", "_"), types, rename=names, gc=False, forbid_unknown_fields=strict)


def _type(type_: str, closed: bool, demanded: tuple[str, ...]) -> Any:
    inner = element(type_)
    if inner != type_:
        below: Any = _type(inner, closed, demanded)
        return GenericAlias(dict, (str, below)) if type_.startswith("{") else GenericAlias(list, (below,))
    return _struct(type_, closed, demanded) if is_message(type_) else _SCALARS.get(type_, object)
