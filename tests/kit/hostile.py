"""Objects of the right types with values that nobody writes: the least and the most of everything, and what is odd."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgspec

from pumice.cluster.api.kinds import KINDS as TABLE
from pumice.cluster.api.kinds import MAKERS
from pumice.cluster.api.schema.compiled import type_of_kind
from pumice.core.objects.parts import WATCHED

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
KINDS: Final = tuple(sorted({*WATCHED, *MAKERS, "CustomResourceDefinition", "LimitRange"} & TABLE.keys()))
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
    """Draw an object of a kind that is read here, with a name."""
    row = TABLE[chance.choice(KINDS)]
    whole = msgspec.inspect.type_info(type_of_kind(row.group, row.version, row.kind))
    found: dict[str, Any] = _drawn(chance, whole, 0)
    metadata: dict[str, Any] = found.get("metadata") or {}
    metadata |= {"name": chance.choice(("a", "b", "default")), "namespace": "default"}
    version = f"{row.group}/{row.version}" if row.group else row.version
    return {**found, "apiVersion": version, "kind": row.kind, "metadata": metadata}


def _drawn(chance: Random, type_: Any, depth: int) -> Any:
    match type_:
        case msgspec.inspect.StructType():
            often = chance.random() / (1 + depth)  # a pod has hundreds of fields
            chosen = [field for field in type_.fields if field.required or chance.random() < often]
            return {field.encode_name: _drawn(chance, field.type, depth + 1) for field in chosen}
        case msgspec.inspect.UnionType():
            return _drawn(chance, chance.choices(type_.types, [_weight(each) for each in type_.types])[0], depth)
        case msgspec.inspect.ListType():
            return [_drawn(chance, type_.item_type, depth) for _ in range(chance.choice((0, 1, 1, 2)))]
        case msgspec.inspect.DictType():
            keys = chance.choices(_KEYS, k=chance.choice((0, 1, 1, 3)))
            return {key: _drawn(chance, type_.value_type, depth) for key in keys}
        case msgspec.inspect.StrType(pattern=str(pattern)):
            return chance.choice(AMOUNTS[:-4] if "numkMGTPE" in pattern else TIMES)
        case _:
            return chance.choice(_LEAVES[type(type_)])


def _weight(type_: Any) -> int:
    return 1 if isinstance(type_, msgspec.inspect.NoneType) else 6
