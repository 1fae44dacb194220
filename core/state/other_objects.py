"""Objects that only some plugin reads: kept as they are, by kind."""

from __future__ import annotations

from pumice.core.objects.metadata import Object, key_of, section


class OtherObjects:
    """`by_kind`: kind -> "namespace/name" (or name) -> object. A dict that a snapshot has seen is copied before it is
    changed. `versions`: by kind, how often it has changed.
    """

    def __init__(self) -> None:
        self.by_kind: dict[str, dict[str, Object]] = {}
        self.versions: dict[str, int] = {}
        self._unshared: set[str] = set()

    def share(self) -> dict[str, dict[str, Object]]:
        """For a snapshot."""
        self._unshared.clear()
        return dict(self.by_kind)

    def apply(self, kind: str, obj: Object, *, deleted: bool) -> None:
        """Take over an object."""
        meta = section(obj, "metadata")
        name = meta.get("name") or ""
        key = key_of(meta["namespace"], name) if meta.get("namespace") else name
        if kind not in self._unshared:
            self._unshared.add(kind)
            self.by_kind[kind] = dict(self.by_kind.get(kind, {}))
        self.versions[kind] = self.versions.get(kind, 0) + 1
        if deleted:
            self.by_kind[kind].pop(key, None)
        else:
            self.by_kind[kind][key] = obj
