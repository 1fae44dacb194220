"""Taking the directives of a strategic merge patch out of what is new in it."""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api.schema.plain import is_list, is_map

_DIRECTIVES: Final = ("$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/")


def without_directives(value: Any) -> Any:
    """A value of a patch as an object has it: no directives, no nulls, no elements that were to be deleted."""
    if is_list(value):
        return [without_directives(each) for each in value if not _is_directed(each)]
    if not is_map(value):
        return value
    return {
        key: without_directives(each)
        for key, each in value.items()
        if each is not None and not key.startswith(_DIRECTIVES) and not _is_directed(each)
    }


def _is_directed(value: Any) -> bool:
    return is_map(value) and "$patch" in value
