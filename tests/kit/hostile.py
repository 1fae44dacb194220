"""Objects of the right types with values that nobody writes: the least and the most of everything, and what is odd."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgspec

from pumice.cluster.api.admission.shapes.kind_shapes import SHAPES
from pumice.cluster.api.kinds import known_types

TEXTS: Final = ("", "a", "default", "root", "*", "a/b", "x" * 300, "\x1b[31m", "a\nb", "-", "é", "0", "Exists", "In")
NUMBERS: Final = (0, 1, -1, 2, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63))
AMOUNTS: Final = (
    "0", "1", "100m", "-1", "1e18", "1e3000", "9" * 30, "1e-30", "8Ei", "9999999Ei", "-9Ei", "1n", "", "x",
    0, 1.5, 1e300, 2**62,
)  # fmt: skip
TIMES: Final = (
    "2026-01-02T03:04:05Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-12:00",
    "x",
)
KINDS: Final = tuple(sorted({(version, kind) for version, kind in known_types() if kind in SHAPES}))
_LEAVES: Final[dict[type, tuple[Any, ...]]] = {
    msgspec.inspect.StrType: (*TEXTS, *TIMES),
    msgspec.inspect.BoolType: (True, False),
    msgspec.inspect.IntType: NUMBERS,
    msgspec.inspect.FloatType: (0.0, -1.5, 1e300),
    msgspec.inspect.NoneType: (None,),
    msgspec.inspect.AnyType: (None, 1, "a", {}, [], {"a": [1]}),
    msgspec.inspect.CustomType: AMOUNTS,
}
_KEYS: Final = (*TEXTS, "cpu", "memory", "nvidia.com/gpu", "pods", "ephemeral-storage", "requests.cpu")


def hostile_object(chance: Random) -> dict[str, Any]:
    """An object of a kind that somebody here reads, with a name; `chance` draws all of it."""
    version, kind = chance.choice(KINDS)
    found: dict[str, Any] = _drawn(chance, msgspec.inspect.type_info(SHAPES[kind]))
    metadata: dict[str, Any] = found.get("metadata") or {}
    metadata |= {"name": chance.choice(("a", "b", "default")), "namespace": "default"}
    return {**found, "apiVersion": version, "kind": kind, "metadata": metadata}


def _drawn(chance: Random, type_: Any) -> Any:
    match type_:
        case msgspec.inspect.StructType():
            often = chance.random()
            chosen = [field for field in type_.fields if field.required or chance.random() < often]
            return {field.encode_name: _drawn(chance, field.type) for field in chosen}
        case msgspec.inspect.UnionType():
            return _drawn(chance, chance.choices(type_.types, [_weight(each) for each in type_.types])[0])
        case msgspec.inspect.ListType():
            return [_drawn(chance, type_.item_type) for _ in range(chance.choice((0, 1, 1, 2)))]
        case msgspec.inspect.DictType():
            keys = chance.choices(_KEYS, k=chance.choice((0, 1, 1, 3)))
            return {key: _drawn(chance, type_.value_type) for key in keys}
        case _:
            return chance.choice(_LEAVES[type(type_)])


def _weight(type_: Any) -> int:
    return 1 if isinstance(type_, msgspec.inspect.NoneType) else 6
