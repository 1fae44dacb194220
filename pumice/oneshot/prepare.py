"""Making handed-in objects fit for a view: what the API fills in, and the ones that no view takes named."""

from __future__ import annotations

from typing import Any

from core.errors import QuantityError
from core.state.view import View
from pumice.errors import InputError
from pumice.load.manifests import Loaded
from pumice.oneshot.between import Object, object_key


def as_admitted(obj: Object) -> Object:
    """What the API would have filled in where a manifest by hand says nothing: uid, a pod's phase, a queue's state.

    The uid is made of namespace and name, so that no order hangs on chance.
    """
    status: dict[str, Any] = obj.get("status") or {}
    if not obj["metadata"].get("uid"):
        obj = {**obj, "metadata": {**obj["metadata"], "uid": object_key(obj).strip("/").replace("/", "-")}}
    if obj["kind"] == "Pod" and not status.get("phase"):
        return {**obj, "status": {**status, "phase": "Pending"}}
    if obj["kind"] == "Queue" and not status.get("state"):
        return {**obj, "status": {**status, "state": "Open"}}
    return obj


def usable(loaded: Loaded) -> tuple[list[Object], list[InputError]]:
    """The objects that a view takes, and a problem for each that it does not (a malformed quantity)."""
    view, taken, problems = View(), list[Object](), list[InputError]()
    for obj in map(as_admitted, loaded.objects):
        try:
            view.apply("ADDED", obj)
        except QuantityError as error:
            name = f"{obj['kind']} {object_key(obj).strip('/')}"
            problems.append(InputError(str(error), source=loaded.place_of(obj), path=name))
        else:
            taken.append(obj)
    return taken, problems
