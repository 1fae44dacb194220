# SPDX-License-Identifier: Apache-2.0
"""Changes that a user who may see some namespaces only may ask about: those of objects in these namespaces.

Any other change would tell of what the user may not see: whether an object exists, or what a node or queue has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pumice.cluster.api.kinds import KINDS
from pumice.config.errors import RequestError
from pumice.core.objects.metadata import Object, is_list, is_mapping
from pumice.questions.oneshot.identity import Identity, identity
from pumice.questions.whatif.naming import identity_named

if TYPE_CHECKING:
    from pumice.questions.adviser.withheld import Withholding

_TARGETS: Final[Mapping[str, Callable[[str], str]]] = {
    "set": lambda text: text.partition(":")[0],
    "scale": lambda text: text.rpartition("=")[0].partition(":")[0],
    "delete": lambda text: text,
}
"""By the key of a change, the object in its text."""
_GROUPS: Final = {"apps", "batch", "batch.volcano.sh", "flow.volcano.sh", "policy", "scheduling.volcano.sh"}
_CORE: Final = {"Pod", "ReplicationController"}
"""Pods, and what pods are made of or protected by. Secrets and the like need rights of their own."""


class OthersChangeError(RequestError):
    """A change of what the asker may not see."""

    code = 403
    reason = "Forbidden"


def demand_own(changes: Sequence[Object], withholding: Withholding) -> None:
    """Check that all changes are of objects in namespaces that are seen. Raises OthersChangeError, and InputError for a
    text that names no object.
    """
    for number, change in enumerate(changes):
        for key, value in change.items():
            for kind, namespace, _ in _changed(key, value):
                if not _is_about_pods(kind) or namespace not in withholding.seen:
                    raise OthersChangeError(
                        f"changes[{number}]: you may ask about changes of pods, jobs and the like, in namespaces "
                        "whose pods you may list, by set, scale, delete or submit"
                    )


def _is_about_pods(kind: str) -> bool:
    row = KINDS.get(kind)
    return row is not None and row.namespaced and (row.group in _GROUPS or row.key in _CORE)


def _changed(key: str, value: Any) -> Iterator[Identity]:
    """Yield the objects that a change is about; what is not known is of no namespace."""
    if key == "submit" and is_list(value):
        for obj in value:
            if is_mapping(obj) and "kind" in obj:
                kind, namespace, name = identity(obj)
                yield kind, namespace or "default", name
            else:
                yield "", "", ""
    elif key in _TARGETS and isinstance(value, str):
        yield identity_named(_TARGETS[key](value))
    else:
        yield "", "", ""
