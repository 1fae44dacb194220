"""APIServices: none that stands for another server, since nobody here passes requests on to one."""

from __future__ import annotations

from typing import Final

from actors.api.admission.rules import Lookup
from actors.api.fields import section
from actors.api.refusals import Cause, forbidden_field
from core.objects.metadata import Object

WHY: Final = "requests are not passed on to other API servers here: what it serves would not be found"


def forbid(api_service: Object, lookup: Lookup) -> str | None:
    """Of a new one."""
    del lookup
    return WHY if section(api_service, "spec").get("service") else None


def validate_update(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """It does not become one either."""
    del old
    return [forbidden_field("spec.service", WHY)] if forbid(new, lookup) else []
