# SPDX-License-Identifier: Apache-2.0
"""Parts of the input that have no effect, and would otherwise be ignored silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypedDict

from pumice.cluster.api import schema
from pumice.cluster.api.kinds import kind_of
from pumice.cluster.api.origin import is_recorded
from pumice.cluster.controllers.unserved import LEFT, NO_CONTROLLER, UNSERVED, other_scheduler
from pumice.config.errors import nearest_name
from pumice.core.objects.metadata import Object, section
from pumice.load.manifests import Loaded

MOST: Final = 20
"""Number of unknown fields that are named."""
MOST_FILES: Final = 3
READ_AS: Final[Mapping[str, str]] = {
    "new": "objects judged as new, by the API's rules",
    "recorded": "objects read as a cluster had them, unjudged (they have a uid, a resourceVersion or a status)",
}


class InputCounts(TypedDict, total=False):
    """Number of objects of the input that are checked as new ones, were read leniently as recorded ones, and were
    refused; None without input.
    """

    new: int
    recorded: int
    refused: int


def read_as(loaded: Loaded) -> InputCounts:
    """Return how many objects are checked as new ones ("new"), and how many are read leniently ("recorded")."""
    recorded = sum(map(is_recorded, loaded.objects))
    return {"new": len(loaded.objects) - recorded, "recorded": recorded}


def told_as(loaded: Loaded) -> list[str]:
    """Return sentences on the objects that are checked as new ones and those that are read leniently, with
    their files.
    """
    files: dict[str, dict[str, None]] = {mode: {} for mode in READ_AS}
    for obj in loaded.objects:
        files["recorded" if is_recorded(obj) else "new"].setdefault(loaded.source_of(obj))
    counts: dict[str, object] = {**read_as(loaded)}
    return [f"{READ_AS[mode]}: {counts[mode]} ({_named(list(found))})" for mode, found in files.items() if found]


def _named(files: Sequence[str]) -> str:
    more = len(files) - MOST_FILES
    return ", ".join(files[:MOST_FILES]) + (f" and {more} more" if more > 0 else "")


def remarks(loaded: Loaded, *, controllers: bool = True) -> list[str]:
    """Return fields that a kind does not have, and kinds that no controller serves; `controllers`: whether Volcano's
    own run here.
    """
    fields = list(_fields(loaded))
    more = [f"and {len(fields) - MOST} more unknown fields"] if len(fields) > MOST else []
    unserved = _counted(loaded, UNSERVED, NO_CONTROLLER)
    left = () if controllers else _counted(loaded, LEFT, "left to other controllers (--no-controllers)")
    return [*fields[:MOST], *more, *unserved, *left]


def _counted(loaded: Loaded, keys: Collection[str], what: str) -> Iterator[str]:
    kinds = Counter(f"{obj['kind']} ({obj['apiVersion']})" for obj in loaded.objects if _key(obj) in keys)
    yield from (f"{kind}: {count}; {what}" for kind, count in sorted(kinds.items()))


def strangers(objects: Iterable[Object]) -> list[str]:
    """Return pods that wait for another scheduler than Volcano's and Kubernetes' own."""
    counts = Counter(name for obj in objects if obj["kind"] == "Pod" and (name := other_scheduler(obj)))
    return [said_of_strangers(name, count) for name, count in sorted(counts.items())]


def said_of_strangers(scheduler: str, count: int) -> str:
    """Return a sentence about pods of another scheduler."""
    return f"pods that ask for scheduler {scheduler}: {count}; no scheduler of that name runs here"


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
