"""What belongs to an owner by its labels: who has no controller is adopted, who does not match is let go.

Source: Kubernetes' `controller_ref_manager`.
"""

from __future__ import annotations

from collections.abc import Callable

from pumice.cluster.controllers.pods_of import reference
from pumice.core.kube.selectors import SelectorError, label_selector
from pumice.core.messages.commands import Patch
from pumice.core.objects.metadata import Object, text_map
from pumice.storage.codec import pack

Belongs = Callable[[Object], bool]


def by_selector(selector: Object | None) -> Belongs:
    """Whether an object's labels match; nothing matches what is no selector, or an empty one."""
    try:
        read = label_selector(selector)
    except SelectorError:
        return lambda _: False
    return lambda obj: bool(selector) and read.matches(text_map(obj["metadata"].get("labels")))


def is_controlled(obj: Object) -> bool:
    """Whether it has a controller, whoever that is."""
    references: list[Object] = obj["metadata"].get("ownerReferences") or []
    return any(each.get("controller") for each in references)


def adoption(owner: Object, kind: str, child: Object, user: str) -> Patch:
    """From now on it is the owner's."""
    others: list[Object] = child["metadata"].get("ownerReferences") or []
    return _references(kind, child, [*others, reference(owner)], user)


def release(owner: Object, kind: str, child: Object, user: str) -> Patch:
    """From now on it is nobody's."""
    left = [each for each in child["metadata"]["ownerReferences"] if each["uid"] != owner["metadata"]["uid"]]
    return _references(kind, child, left, user)


def _references(kind: str, child: Object, references: list[Object], user: str) -> Patch:
    meta = child["metadata"]
    patch = {"metadata": {"uid": meta["uid"], "ownerReferences": references or None}}
    return Patch(kind, meta["namespace"], meta["name"], pack(patch), user=user)
