"""Priority classes: what a job's priority is worth. Source: Volcano `cache.Snapshot` (reference section 5.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.objects.metadata import section

if TYPE_CHECKING:
    from pumice.core.objects.metadata import Object


class PriorityClasses:
    """Name -> (value, whether it is the default of the cluster)."""

    def __init__(self) -> None:
        self._classes: dict[str, tuple[int, bool]] = {}

    def apply(self, obj: Object, *, deleted: bool) -> bool:
        """Take over one object; whether anything has changed."""
        name = section(obj, "metadata").get("name") or ""
        if deleted:
            return self._classes.pop(name, None) is not None
        known, told = self._classes.get(name), (int(obj.get("value") or 0), bool(obj.get("globalDefault")))
        self._classes[name] = told
        return told != known

    def value(self, name: str) -> int:
        """The class's value; for an unknown or no name the default class's, 0 without one."""
        if name in self._classes:
            return self._classes[name][0]
        return next((value for value, is_default in self._classes.values() if is_default), 0)
