# SPDX-License-Identifier: Apache-2.0
"""The kind that a definition defines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pumice.cluster.api.kinds import VOLCANOS, Kind
from pumice.core.objects.metadata import Object, has_condition, rows, section

if TYPE_CHECKING:
    from collections.abc import Mapping

_VERSION: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES: Final[Mapping[str | None, int]] = {"alpha": 0, "beta": 1, None: 2}


def kind_row(spec: Object) -> Kind:
    """Return the row of a definition's spec, which admission has accepted.

    Objects are stored under the storage version (the best served one when it is not served itself).
    """
    names, group = spec["names"], spec["group"]
    served = served_versions(spec)
    stored = next((each["name"] for each in rows(spec, "versions") if each.get("storage")), "")
    version = stored if stored in served or not served else served[0]
    others = tuple(name for name in served if name != version)
    parts = [section(each, "subresources") for each in rows(spec, "versions")]
    return Kind(
        key=f"{names['kind']}.{group}",
        kind=names["kind"],
        group=group,
        version=version,
        plural=names["plural"],
        namespaced=spec.get("scope") == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        status=any("status" in each for each in parts),
        also=tuple(f"{group}/{name}" for name in others),
        versions=others,
        categories=tuple(names.get("categories") or ()),
        scale=any("scale" in each for each in parts),
        singular_name=names.get("singular") or names["kind"].lower(),
        defined=True,
        list_kind=names.get("listKind") or f"{names['kind']}List",
        selectable=selectable_fields(spec),
    )


def key_of(definition: Object) -> str:
    """Return the key of the kind that a definition defines; a Volcano kind has its own."""
    spec = definition["spec"]
    return VOLCANOS.get(definition["metadata"]["name"]) or f"{spec['names']['kind']}.{spec['group']}"


def served_versions(spec: Object) -> list[str]:
    """Return names of the served versions, the best first: v2, v1, v1beta1, v1alpha1, then others by name."""
    names = [each["name"] for each in rows(spec, "versions") if each.get("served")]
    return sorted(sorted(names), key=_rank, reverse=True)


def selectable_fields(spec: Object) -> tuple[str, ...]:
    """Return paths of the fields by which objects can be selected, in any version."""
    listed = (each for version in rows(spec, "versions") for each in rows(version, "selectableFields"))
    return tuple(dict.fromkeys(str(each.get("jsonPath") or "").lstrip(".") for each in listed))


def names_of(spec: Object) -> tuple[set[str], set[str]]:
    """Return the names of a spec that must be free in its group: of the resource, and of the kinds."""
    names = section(spec, "names")
    resources = {names.get("plural"), names.get("singular"), *(names.get("shortNames") or ())}
    return {name for name in resources if name}, {name for name in (names.get("kind"), names.get("listKind")) if name}


def is_accepted(definition: Object) -> bool:
    """Return whether its names were accepted (the condition says so)."""
    return has_condition(definition, "Established")


def _rank(name: str) -> tuple[int, int, int, int]:
    match = _VERSION.fullmatch(name)
    if match is None:
        return (0, 0, 0, 0)
    return (1, _STAGES[match[2]], int(match[1]), int(match[3] or 0))
