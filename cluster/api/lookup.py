"""What admission may look at besides the object itself: the store's tables, read only."""

from __future__ import annotations

from pumice.cluster.api.tables import ObjectTables
from pumice.core.objects.metadata import Object, section


class TablesLookup:
    """`Lookup` over the tables. Objects handed out are shared: whoever gets one must not change it."""

    def __init__(self, tables: ObjectTables) -> None:
        self._tables = tables
        self._classes_at = -1
        self._default_class: Object | None = None

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """An object, or None."""
        return self._tables.shared((kind, namespace, name))

    def all(self, kind: str, namespace: str | None = None) -> list[Object]:
        """All objects of a kind, or those of a namespace, by namespace and name."""
        found = self._tables.of_kind(kind, namespace)
        return [obj for name, _ in found if (obj := self._tables.shared((kind, *name))) is not None] if found else []

    def queues(self) -> list[Object]:
        """All queues, by name."""
        names = sorted(name for _, name in self._tables.names("Queue"))
        return [queue for name in names if (queue := self._tables.shared(("Queue", "", name))) is not None]

    def children(self, parent: str) -> list[Object]:
        """The queues whose parent it is."""
        return [queue for queue in self.queues() if section(queue, "spec").get("parent") == parent]

    def default_priority_class(self) -> Object | None:
        """The PriorityClass that is the global default: the lowest value when there are several, as in Kubernetes."""
        revision = self._tables.kind_revisions["PriorityClass"]
        if revision != self._classes_at:
            self._classes_at = revision
            self._default_class = self._find_default_class()
        return self._default_class

    def _find_default_class(self) -> Object | None:
        names = [name for _, name in self._tables.names("PriorityClass")]
        classes = [found for name in names if (found := self.get("PriorityClass", "", name)) is not None]
        defaults = [found for found in classes if found.get("globalDefault")]
        return min(defaults, key=_value_and_name, default=None)


def _value_and_name(priority_class: Object) -> tuple[int, str]:
    return priority_class.get("value", 0), priority_class["metadata"]["name"]
