# SPDX-License-Identifier: Apache-2.0
"""JSON merge patch (RFC 7396), without changing its arguments."""

from __future__ import annotations

from typing import Any, cast


def merge_patch(target: Any, patch: Any) -> Any:
    """Return `target` with `patch` merged in: null removes a key, mappings merge, everything else replaces.

    Neither argument is changed; unchanged parts of the target are shared with the result.
    """
    if not isinstance(patch, dict):
        return patch
    result: dict[str, Any] = {**target} if isinstance(target, dict) else {}
    for key, value in cast("dict[str, Any]", patch).items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merge_patch(result.get(key), value)
        else:
            result[key] = value
    return result


def diff_patch(before: object, after: dict[str, Any]) -> dict[str, Any]:
    """Return the smallest merge patch that turns `before` into `after` (neither may hold nulls); empty when they are
    equal.
    """
    if not isinstance(before, dict):
        return after
    old = cast("dict[str, Any]", before)
    patch: dict[str, Any] = {key: None for key in old if key not in after}
    for key, value in after.items():
        if key not in old:
            patch[key] = value
        elif old[key] != value:
            both = isinstance(value, dict) and isinstance(old[key], dict)
            patch[key] = diff_patch(old[key], cast("dict[str, Any]", value)) if both else value
    return patch
