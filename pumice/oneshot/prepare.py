"""Making handed-in objects fit for a view: uids where nobody gave one, and the ones that no view would take named."""

from __future__ import annotations

from collections.abc import Iterable

from core.errors import QuantityError
from core.state.view import View
from pumice.errors import InputError
from pumice.load.manifests import Loaded
from pumice.oneshot.between import Object, object_key


def with_uids(objects: Iterable[Object]) -> list[Object]:
    """Pods by hand have no uid; they get one made of namespace and name, so that order does not hang on chance."""
    return [obj if obj["metadata"].get("uid") else _with_uid(obj) for obj in objects]


def _with_uid(obj: Object) -> Object:
    uid = object_key(obj).strip("/").replace("/", "-")
    return {**obj, "metadata": {**obj["metadata"], "uid": uid}}


def usable(loaded: Loaded) -> tuple[list[Object], list[InputError]]:
    """The objects that a view takes, and a problem for each that it does not (a malformed quantity)."""
    view, taken, problems = View(), list[Object](), list[InputError]()
    for obj in with_uids(loaded.objects):
        try:
            view.apply("ADDED", obj)
        except QuantityError as error:
            name = f"{obj['kind']} {object_key(obj).strip('/')}"
            problems.append(InputError(str(error), source=loaded.place_of(obj), path=name))
        else:
            taken.append(obj)
    return taken, problems
