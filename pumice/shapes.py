"""Type guards for decoded data: what `isinstance` knows, in types that both checkers understand."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_mapping(value: object) -> TypeGuard[dict[str, Any]]:
    """A decoded JSON or YAML mapping."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """A decoded JSON or YAML sequence."""
    return isinstance(value, list)
