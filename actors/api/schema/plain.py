"""Telling apart what plain JSON is made of, in words that the type checkers follow."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_map(value: object) -> TypeGuard[dict[str, Any]]:
    """A mapping from texts."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """A list of anything."""
    return isinstance(value, list)
