"""Names that stand twice in one object of a JSON text: parsers keep the last one and say nothing."""

from __future__ import annotations

import json
from typing import Any

from pumice.cluster.api.schema.plain import is_list

_MOST = 100


class _Pairs(list[tuple[str, Any]]):
    """The names and values of one JSON object in their order."""


def duplicate_fields(text: bytes) -> list[str]:
    """`duplicate field "spec.weight"` for each, a hundred at most, in the text's order; none for what is no JSON."""
    try:
        value: Any = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return []
    found: list[str] = []
    _look(value, "", found)
    return found[:_MOST]


def _look(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, each in value:
            inner = f"{path}.{name}" if path else name
            if name in seen:
                message = f'duplicate field "{inner}"'
                if message not in found:
                    found.append(message)
            seen.add(name)
            _look(each, inner, found)
    elif is_list(value):
        for at, each in enumerate(value):
            _look(each, f"{path}[{at}]", found)
