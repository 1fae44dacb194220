# SPDX-License-Identifier: Apache-2.0
"""The questions that every family of shared devices answers. Source: Volcano `api/shared_device_pool.go` (Devices)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pumice.core.objects.metadata import Object, section
from pumice.core.quantity import quantity_of
from pumice.core.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pumice.core.devices.locks import NodeLocks
    from pumice.core.messages.queue_tables import CardTable
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate

# --- Words for cards that will not do

MOST: Final = 8
"""Number of cards that are named."""


def told_of(against: Mapping[str, list[str]], asked: int = 1) -> list[str]:
    """Return a sentence for each card, "card 0: 2,000 MiB left of 16,000, asks 4,000"; of very many cards the first.
    `asked`: how many a container requests; when there are fewer, the sentence about their number comes first.
    """
    good = sum(not reasons for reasons in against.values())
    few = [f"{good} of the {asked} cards asked for would do"] if good < asked and asked > 1 else []
    sentences = [f"{card}: {'; '.join(reasons) if reasons else 'would do'}" for card, reasons in against.items()]
    more = len(sentences) - MOST
    return [*few, *sentences[:MOST], *([f"and {more} more"] if more > 0 else [])]


def short_of(what: str, left: int, size: int, asked: int) -> list[str]:
    """Return a sentence for people when a card has too little left, else ""."""
    return [f"{left:,} {what} left of {size:,}, asks {asked:,}"] if left < asked else []


BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Rows = slice | npt.NDArray[np.intp]
ALL: Final = slice(None)
Notes = dict[str, str]
"""A pod's annotations as the session has them."""


def is_all(rows: Rows) -> bool:
    """Return whether all nodes are asked about."""
    return isinstance(rows, slice) and rows == ALL


def numbers_of(rows: Rows, count: int) -> Sequence[int]:
    """Yield the rows of `count` nodes."""
    return range(count)[rows] if isinstance(rows, slice) else rows.tolist()


class DeviceError(Exception):
    """Devices cannot be assigned; the text is Volcano's."""


class Refusal(NamedTuple):
    """The message about a node where a pod does not fit; `is_error`: an error that no eviction would cure."""

    text: str
    is_error: bool = False


class Around(NamedTuple):
    """The surroundings of devices. `whole`: all that the api has of a pod, by its uid; `idle`: the idle scalars of a
    node's row, in milli-units.
    """

    whole: Callable[[str], Any]
    idle: Callable[[int], dict[str, float]]


class Family(Protocol):
    """Devices of one kind on all nodes [N]. `name`: Volcano's name of the kind."""

    name: str
    uniform: bool = True
    """True when a refusal has the same text for every node."""
    always_named: bool = True
    """True when nodes without such devices are listed as having none, not left out (`encoded`)."""
    owns: bool = False
    """True when what a pod has of such devices may replace its request in the sums of queues (`owned`)."""
    locks: NodeLocks | None = None
    """The lock that a pod with new devices sets on its node; None: nodes are not locked."""

    vocabulary: Vocabulary = Vocabulary()
    """Words of objects that the family reads or says and that are not names."""

    @staticmethod
    def given(notes: Mapping[str, str]) -> Iterator[str]:
        """Yield a phrase for each card that a pod was given by its annotations."""
        yield from ()

    def concerns(self, task: Task) -> bool:
        """Return whether the pod asks for such devices (HasDeviceRequest)."""
        ...

    def kind(self, task: Task) -> Hashable:
        """Return what the family reads of a task besides its template; by default nothing."""
        return None

    @property
    def present(self) -> BoolArray:
        """Return the nodes that have such devices [N]."""
        ...

    def fitting(self, task: Task, rows: Rows = ALL) -> BoolArray:
        """Return the nodes that have what the task asks for, of those rows that have any [len(rows)] (FilterNode)."""
        ...

    def fits(self, task: Task, row: int) -> bool:
        """Return whether one node with such devices has what the task asks for."""
        return bool(self.fitting(task, slice(row, row + 1))[0])

    def refusal(self, task: Task, row: int) -> Refusal:
        """Return the message about a node where the task does not fit."""
        ...

    def against(self, task: Task, row: int) -> dict[str, list[str]]:
        """Return card -> its own obstacle, for people; empty where it fits."""
        ...

    def cards_asked(self, task: Task) -> int:
        """Return the largest number of cards that one node must have, where cards are counted."""
        return 1

    def scores(self, task: Task, rows: Rows = ALL) -> FloatArray:
        """Return how well the task fits on each node, 0 on a node without such devices, float64 [len(rows)]
        (ScoreNode).
        """
        ...

    def score(self, task: Task, row: int) -> float:
        """Return how well the task fits on one node."""
        return float(self.scores(task, slice(row, row + 1))[0])

    def add(self, row: int, task: Task, notes: Mapping[str, str]) -> None:
        """Count what the notes say that the pod has (AddResource)."""
        ...

    def remove(self, row: int, task: Task, notes: Mapping[str, str]) -> None:
        """Take back what `add` counted (SubResource)."""
        ...

    def resident(self, row: int, task: Task, notes: Mapping[str, str], *, leaves: bool) -> None:
        """Count a pod that is on the node as the session opens; the devices of one that `leaves` no longer count."""
        if not leaves:
            self.add(row, task, notes)

    def assign(self, row: int, task: Task, notes: Notes, now: float) -> Notes:
        """Choose devices, count them, and return the annotations of the pod (Allocate). Where Volcano writes its copy
        of the pod, the annotations are written, too. Raises DeviceError.
        """
        ...

    def take_lock(self, row: int, task: Task, lock: str, words: str) -> None:
        """Lock the node, where nodes are locked. Raises DeviceError with Volcano's text."""
        if self.locks is not None:
            try:
                self.locks.take(row, lock, task.uid)
            except DeviceError as error:
                raise DeviceError(f"{words} {error}") from error

    def release(self, row: int, task: Task, notes: Notes) -> tuple[str, ...]:
        """Give back what the pod was assigned: the annotations that go (Release)."""
        ...

    def owned(self, row: int, notes: Mapping[str, str]) -> dict[str, float]:
        """Return the pod's amounts of the node's scalars by its annotations, in milli-units: they replace the pod's
        request in the sums of queues (AddQueueResource). By default None: the request counts.
        """
        return {}

    def note_scores(self, task: Task, rows: Rows) -> None:
        """Keep the scores that the filter found for these nodes, where the scorer reads them and `encoded` shows
        them.
        """
        return

    def encoded(self, row: int, around: Around) -> Object | None:
        """Return the devices of a node as Volcano's struct encodes to JSON; None where the node has no such devices."""
        ...

    def table(self) -> CardTable | None:
        """Return the use of each card, for metrics and the page; None for a family that is not shown."""
        return None

    def trial(self, row: int) -> Family:
        """Return a copy that has only that node, as row 0, for changes on trial."""
        ...


def limits_of(container: Object) -> Object:
    """Return resources.limits of a container."""
    return section(section(dict(container), "resources"), "limits")


def requests_of(container: Object) -> Object:
    """Return resources.requests of a container."""
    return section(section(dict(container), "resources"), "requests")


def containers(template: PodTemplate, kind: str = "containers") -> Iterator[Object]:
    """Yield the containers of a pod; `kind` "initContainers" for the others."""
    yield from template.spec.get(kind) or ()


def amount(quantities: Object, name: str) -> int:
    """Return the whole number of a resource, rounded up; 0 without the resource."""
    return quantity_of(quantities[name]).value() if name in quantities else 0


def whole(quantities: Object, name: str) -> int | None:
    """Return a quantity as a whole number (AsInt64); None where it is not one."""
    quantity = quantity_of(quantities[name])
    return quantity.value() if quantity.value() * 1000 == quantity.milli_value() else None
