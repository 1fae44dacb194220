"""Kinds of which admission only checks the amounts they state: quotas, volumes and claims."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from pumice.cluster.api.admission.amounts import amount_problems
from pumice.cluster.api.admission.rules import Admission, Lookup
from pumice.cluster.api.refusals import Cause
from pumice.core.objects.metadata import Object, section

_PLACES: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "ResourceQuota": (("spec", "hard"), ("status", "hard"), ("status", "used")),
    "PersistentVolume": (("spec", "capacity"),),
    "PersistentVolumeClaim": (("spec", "resources", "requests"),),
}


def _problems(places: tuple[tuple[str, ...], ...], obj: Object, lookup: Lookup) -> list[Cause]:
    del lookup
    return [cause for place in places for cause in amount_problems(_at(obj, place), ".".join(place))]


def _at(obj: Object, place: tuple[str, ...]) -> dict[str, Any]:
    for name in place:
        obj = section(obj, name)
    return obj


def _update_problems(places: tuple[tuple[str, ...], ...], old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    del old
    return _problems(places, new, lookup)


STATED: Final[dict[str, Admission]] = {
    kind: Admission(validate=partial(_problems, places), validate_update=partial(_update_problems, places))
    for kind, places in _PLACES.items()
}
"""Their rows of the admission table."""
