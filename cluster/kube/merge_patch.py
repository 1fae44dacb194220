# SPDX-License-Identifier: Apache-2.0
"""JSON merge patch (RFC 7396), without changing its arguments."""

from __future__ import annotations

from typing import Any

from pumice.core.objects.metadata import Object, is_mapping, mapping


def merge_patch(target: Any, patch: Any) -> Any:
    """Return `target` with `patch` merged in: null removes a key, mappings merge, everything else replaces.

    Neither argument is changed; unchanged parts of the target are shared with the result.
    """
    if not is_mapping(patch):
        return patch
    result = {**mapping(target)}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        # Merged even where the target has no mapping: nulls in the patch must go (RFC 7396, section 2).
        elif isinstance(value, dict):
            result[key] = merge_patch(result.get(key), value)
        else:
            result[key] = value
    return result


def diff_patch(before: object, after: Object) -> Object:
    """Return the smallest merge patch that turns `before` into `after` (neither may hold nulls); empty when they are
    equal.
    """
    if not is_mapping(before):
        return after
    patch: Object = {key: None for key in before if key not in after}
    for key, value in after.items():
        if key not in before:
            patch[key] = value
        elif (old := before[key]) != value:
            patch[key] = diff_patch(old, value) if is_mapping(value) and is_mapping(old) else value
    return patch
