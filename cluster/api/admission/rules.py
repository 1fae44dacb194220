# SPDX-License-Identifier: Apache-2.0
"""Admission rows: their parts, and the state that they may read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from pumice.cluster.api.refusals import Cause, invalid_value
from pumice.config.durations import duration_s
from pumice.core.objects.metadata import Object
from pumice.core.texts import whole_number

# --- Annotations that say how a pod runs here

DURATIONS: Final = ("pumice.dev/duration", "pumice.dev/termination")
EXIT_CODE: Final = "pumice.dev/exit-code"
_MOST_EXIT_CODE: Final = 255


def run_problems(annotations: dict[str, str], path: str) -> list[Cause]:
    """Return the problems of these annotations; `path` is that of the metadata section that holds them."""
    if not annotations:
        return []
    found: list[Cause] = []
    for name in DURATIONS:
        if name in annotations and ((seconds := duration_s(annotations[name])) is None or seconds < 0):
            why = "expected a duration of at least 0, such as 90s, 1h30m or 0"
            found.append(invalid_value(f"{path}.annotations[{name}]", annotations[name], why))
    code = annotations.get(EXIT_CODE)
    number = 0 if code is None else whole_number(code)
    if number is None or number > _MOST_EXIT_CODE:
        why = f"expected a number from 0 to {_MOST_EXIT_CODE}"
        found.append(invalid_value(f"{path}.annotations[{EXIT_CODE}]", code, why))
    return found


MOST_PODS: Final = 150_000
"""Limit on the pods of one object: more than a whole cluster of Kubernetes holds.

Source: https://kubernetes.io/docs/setup/best-practices/cluster-large/
"""


class Lookup(Protocol):
    """The stored objects that admission reads. They are shared and read-only."""

    def get(self, kind: str, namespace: str, name: str) -> Object | None: ...

    def queues(self) -> list[Object]: ...

    def children(self, parent: str) -> list[Object]: ...

    def all(self, kind: str, namespace: str | None = None) -> list[Object]: ...

    def default_priority_class(self) -> Object | None: ...


@dataclass(frozen=True, slots=True)
class Admission:
    """Rules of one kind, in the order of calls; the object handed to the first three may be changed.

    `initial_status` replaces dropping the status of a new object. `default` fills in what was left out. `forbid` gives
    the reason of a 403; `validate` and `validate_update` (old, new) the causes of a 422. `settle` writes
    what only the server says of an object that has been accepted, new or changed; it gets the time as text.
    `webhook`: whose words the causes are, where Volcano has them from a webhook and not from its definition.

    What exists is not judged again: of an object that is loaded from another cluster, `default` is filled in (or
    `fill_loaded`, where the defaults of new objects would change what is there), and only `indispensable` is asked.
    """

    initial_status: Callable[[Object], object] | None = None
    default: Callable[[Object, Lookup], None] | None = None
    forbid: Callable[[Object, Lookup], str | None] | None = None
    validate: Callable[[Object, Lookup], list[Cause]] | None = None
    validate_update: Callable[[Object, Object, Lookup], list[Cause]] | None = None
    settle: Callable[[Object, Lookup, str], None] | None = None
    forbid_delete: Callable[[Object, Lookup], str | None] | None = None
    fill_loaded: Callable[[Object, Lookup], None] | None = None
    indispensable: Callable[[Object, Lookup], list[Cause]] | None = None
    webhook: str = ""
