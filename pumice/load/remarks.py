"""What of the input will come to nothing, and would otherwise do so in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from pumice.actors.api import schema
from pumice.actors.api.kinds import kind_of
from pumice.actors.controllers.unserved.kinds import LEFT, NO_CONTROLLER, UNSERVED, other_scheduler
from pumice.config.errors import nearest_name
from pumice.core.objects.metadata import section
from pumice.load.manifests import Loaded

Object = dict[str, Any]

MOST: Final = 20
"""So many unknown fields are named."""


def remarks(loaded: Loaded, *, controllers: bool = True) -> list[str]:
    """Fields that a kind does not have, and kinds that nobody runs; `controllers`: whether Volcano's own are here."""
    fields = list(_fields(loaded))
    more = [f"and {len(fields) - MOST} more unknown fields"] if len(fields) > MOST else []
    unserved = _counted(loaded, UNSERVED, NO_CONTROLLER)
    left = () if controllers else _counted(loaded, LEFT, "left to somebody else's controllers (--no-controllers)")
    return [*fields[:MOST], *more, *unserved, *left]


def _counted(loaded: Loaded, keys: Collection[str], what: str) -> Iterator[str]:
    kinds = Counter(f"{obj['kind']} ({obj['apiVersion']})" for obj in loaded.objects if _key(obj) in keys)
    yield from (f"{kind}: {count}; {what}" for kind, count in sorted(kinds.items()))


def strangers(objects: Iterable[Object]) -> list[str]:
    """Pods that wait for another scheduler than Volcano's and Kubernetes' own."""
    counts = Counter(name for obj in objects if obj["kind"] == "Pod" and (name := other_scheduler(obj)))
    return [said_of_strangers(name, count) for name, count in sorted(counts.items())]


def said_of_strangers(scheduler: str, count: int) -> str:
    """In words."""
    return f"pods that ask for scheduler {scheduler}: {count}; nobody here serves it"


def _fields(loaded: Loaded) -> Iterator[str]:
    for obj in loaded.objects:
        kind = kind_of(obj["apiVersion"], obj["kind"])
        if kind is None:
            continue
        metadata = section(obj, "metadata")
        for path, shape in schema.misplaced_fields(obj, schema.shape_of_kind(kind.group, kind.version, kind.kind)):
            near = nearest_name(path.rpartition(".")[2], shape.names())
            hint = f", did you mean {near!r}?" if near else ""
            name = "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))
            yield f"{loaded.place_of(obj)}: {obj['kind']} {name}: unknown field {path!r}{hint}"


def _key(obj: Object) -> str:
    kind = kind_of(obj["apiVersion"], obj["kind"])
    return kind.key if kind else ""
