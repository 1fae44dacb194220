"""Objects as people name them: `queue/q1`, `job/team-a/train`, `node/n1`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pumice.cluster.api.kinds import KINDS, Kind
from pumice.config.errors import nearest_keys, nearest_names
from pumice.core.objects.metadata import Object
from pumice.errors import InputError
from pumice.questions.oneshot.prepare import Identity, identity

MORE: Final = {"vcjob": "Job", "pg": "PodGroup", "q": "Queue"}


def kind_named(word: str) -> Kind:
    """By kind, singular, plural or short name. Raises InputError."""
    lower = word.lower()
    if lower in MORE:
        return KINDS[MORE[lower]]
    exact = next((row for row in KINDS.values() if row.key.lower() == lower), None)
    named = (row for row in KINDS.values() if lower in (row.singular, row.plural, *row.short_names))
    if (found_row := exact or next(named, None)) is not None:
        return found_row
    near = nearest_names(lower, [row.singular for row in KINDS.values()])
    hint = f", did you mean {near[0]!r}?" if near else ""
    raise InputError(f"nobody knows the kind {word!r}{hint}")


def identity_named(text: str) -> Identity:
    """Of KIND/NAME or KIND/NAMESPACE/NAME; the namespace is default where there is one and it is left out."""
    word, *rest = text.split("/")
    if not 1 <= len(rest) <= 2 or not all(rest):
        raise InputError(f"expected KIND/NAME or KIND/NAMESPACE/NAME, was {text!r}")
    kind = kind_named(word)
    if not kind.namespaced:
        if len(rest) > 1:
            raise InputError(f"a {kind.kind} is in no namespace: expected {word}/{rest[-1]}, was {text!r}")
        return kind.key, "", rest[0]
    return kind.key, rest[0] if len(rest) > 1 else "default", rest[-1]


def found(objects: Sequence[Object], who: Identity) -> int:
    """The place of that object. Raises InputError, with the names that are near."""
    for place, obj in enumerate(objects):
        if obj["metadata"].get("name") == who[2] and _settled(obj) == who:
            return place
    raise InputError(missing(objects, who))


def missing(objects: Iterable[Object], who: Identity) -> str:
    """There is none of that name; near ones."""
    shown = "/".join(part for part in who[1:] if part)
    known = ["/".join(part for part in _settled(obj)[1:] if part) for obj in objects if _settled(obj)[0] == who[0]]
    near = nearest_keys(shown, known)
    hint = f"; near: {', '.join(near)}" if near else ""
    return f"there is no {who[0]} {shown}{hint}"


def _settled(obj: Object) -> Identity:
    """A namespaced object without a namespace is in `default`."""
    kind, namespace, name = identity(obj)
    row = KINDS.get(kind)
    return kind, namespace or ("default" if row is not None and row.namespaced else ""), name
