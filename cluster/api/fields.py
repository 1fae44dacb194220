# SPDX-License-Identifier: Apache-2.0
"""Reading of fields of plain objects whose types were checked on arrival: an absent or null field is empty."""

from __future__ import annotations

from typing import Any, Final, TypeGuard

from pumice.core.objects.metadata import section

__all__ = ["COMPOUND", "annotations_of", "containers_of", "is_list", "is_mapping", "labels_of", "rows", "section"]

Mapping = dict[str, Any]

COMPOUND: Final = frozenset((dict, list))
"""Classes of values that hold others. Asked of thousands of values that hold none, this is cheaper than a call."""


def is_mapping(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether the value is a mapping, as decoding leaves them."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return whether the value is a list."""
    return isinstance(value, list)


def rows(holder: Mapping, name: str) -> list[Mapping]:
    """Return the list of mappings under `name`."""
    found: list[Mapping] = holder.get(name) or []
    return found


def labels_of(holder: Mapping) -> dict[str, str]:
    """Return metadata.labels."""
    return section(section(holder, "metadata"), "labels")


def annotations_of(holder: Mapping) -> dict[str, str]:
    """Return metadata.annotations."""
    return section(section(holder, "metadata"), "annotations")


def containers_of(pod_spec: Mapping) -> list[Mapping]:
    """Return containers and init containers of a pod spec."""
    containers, first = rows(pod_spec, "containers"), rows(pod_spec, "initContainers")
    return [*containers, *first] if first else containers
