# SPDX-License-Identifier: Apache-2.0
"""PodDisruptionBudgets in the monitor's books: the remaining disruptions, counted from the api's mutations alone.

The api grants an eviction on the word of the disruption controller, which counts pods a little after they change. So
an eviction breaks a budget when it overdraws what the pods left at every moment of the last LAG_S seconds; all that was
granted since that moment counts against it. Judged are budgets that want a number of pods: a share of them, and the
most that may be missing, depend on how many pods their controllers want.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final

from pumice.core.kube.selectors import LabelSelector, SelectorError, label_selector
from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object, section, text_map
from pumice.storage import codec

Name = tuple[str, str]
BUDGET: Final = "PodDisruptionBudget"
EVICTED: Final = "EvictionByEvictionAPI"
LAG_S: Final = 10.0
"""Greatest age of the controller's count: the journal may be slow for 8 s, with the requests of all clients behind
it."""


@dataclass(frozen=True, slots=True)
class BudgetedPod:
    """Facts of a pod that matter to budgets. `evicted`: an eviction of the pod was granted."""

    uid: str
    labels: Mapping[str, str]
    ready: bool
    evicted: bool

    @property
    def healthy(self) -> bool:
        """Return counts."""
        return self.ready and not self.evicted


@dataclass(slots=True)
class BudgetBook:
    """One budget. `wants`: healthy pods; `allowed`: disruptions by its status, by revision. `left`: [time, pods to
    spare].
    """

    selector: LabelSelector
    wants: int
    healthy: int = 0
    allowed: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    left: list[list[float]] = field(default_factory=list[list[float]])

    @property
    def spare(self) -> int:
        """Return healthy pods that it can spare; below 0 when some are missing."""
        return self.healthy - self.wants

    def counted(self, change: int, at: float) -> None:
        """Count so many more healthy pods."""
        self.healthy += change
        self.left.append([at, self.spare])
        past = len(list(takewhile(lambda entry: entry[0] <= at - LAG_S, self.left)))
        del self.left[: max(past - 1, 0)]

    def granted(self, at: float) -> bool:
        """Count a granted eviction; False when none was left for it, whenever its pods were counted."""
        for entry in self.left:
            entry[1] -= 1
        self.counted(-1, at)
        return max(entry[1] for entry in self.left) >= 0

    def forbids(self, revision: int) -> bool:
        """Return whether the budget existed at `revision`, and its status has allowed no disruption from then on."""
        first = max((index for index, (at, _) in enumerate(self.allowed) if at <= revision), default=None)
        return first is not None and all(allowed <= 0 for _, allowed in self.allowed[first:])


class BudgetBooks:
    """The budgets' books. They cost nothing until the first budget comes: only then are pods read."""

    def __init__(
        self,
        blobs: Mapping[tuple[str, str, str], bytes],
        clock: Callable[[], float],
        read: Callable[[bytes], Any] = codec.unpack,
    ) -> None:
        """Start the books. `blobs`: all objects, each as of the newest mutation, which `see` gets next; `read` decodes
        them.
        """
        self._read = read
        self.by_name: dict[Name, BudgetBook] = {}
        self._blobs = blobs
        self._clock = clock
        self._pods: dict[Name, BudgetedPod] = {}

    def begin(self, revision: int) -> None:
        """Start from the objects that are there."""
        for (kind, *name), blob in self._blobs.items():
            if kind == BUDGET:
                self._budget((name[0], name[1]), self._read(blob), revision)

    def see(self, mutation: Mutation) -> Iterator[str]:
        """Take a mutation, and return sentences for every budget that it breaks. Without budgets only theirs need be
        seen.
        """
        name = (mutation.namespace, mutation.name)
        gone = mutation.type == "DELETED"
        if mutation.kind == BUDGET:
            self._budget(name, None if gone else self._read(mutation.blob), mutation.revision)
        elif mutation.kind == "Pod" and self.by_name:
            yield from self._pod(name, None if gone else read_guarded(self._read(mutation.blob)))

    def forbid(self, name: Name, uid: str, revision: int) -> bool:
        """Return whether a budget of this pod allowed no disruption, as of `revision`."""
        pod = self._pods.get(name)
        if pod is None or pod.uid != uid or pod.evicted:
            return False
        return any(book.forbids(revision) for _, book in self._of(name, pod))

    def _budget(self, name: Name, obj: Object | None, revision: int) -> None:
        wanted = None if obj is None else _wanted(section(obj, "spec"))
        if obj is None or wanted is None:
            self.by_name.pop(name, None)
            return
        if not self.by_name:
            self._pods = {key[1:]: read_guarded(self._read(blob)) for key, blob in self._pod_blobs()}
        before = self.by_name.get(name)
        if before is None or (before.selector, before.wants) != wanted:
            book = self.by_name[name] = BudgetBook(*wanted)
            members = [pod for own, pod in self._pods.items() if own[0] == name[0] and pod.healthy]
            book.counted(sum(book.selector.matches(pod.labels) for pod in members), self._clock())
        allowed = section(obj, "status").get("disruptionsAllowed") or 0
        self.by_name[name].allowed.append((revision, int(allowed)))

    def _pod_blobs(self) -> Iterator[tuple[tuple[str, str, str], bytes]]:
        return (item for item in self._blobs.items() if item[0][0] == "Pod")

    def _pod(self, name: Name, after: BudgetedPod | None) -> Iterator[str]:
        before = self._pods.pop(name, None)
        if after is not None:
            self._pods[name] = after
        if before == after:
            return
        at = self._clock()
        if before is not None and before.healthy:
            if after is not None and after.uid == before.uid and after.evicted:
                yield from self._evicted(name, before, at)
            else:
                self._counted(name, before, -1, at)
        if after is not None and after.healthy:
            self._counted(name, after, 1, at)

    def _counted(self, name: Name, pod: BudgetedPod, change: int, at: float) -> None:
        for _, book in self._of(name, pod):
            book.counted(change, at)

    def _evicted(self, name: Name, pod: BudgetedPod, at: float) -> Iterator[str]:
        for own, book in self._of(name, pod):
            if not book.granted(at):
                yield f"budget {own} wants {book.wants} healthy pods and has {book.healthy} without {'/'.join(name)}"

    def _of(self, name: Name, pod: BudgetedPod) -> Iterator[tuple[str, BudgetBook]]:
        for (namespace, own), book in self.by_name.items():
            if namespace == name[0] and book.selector.matches(pod.labels):
                yield own, book


def read_guarded(pod: Object) -> BudgetedPod:
    """Read a pod: it is ready when it says so and is not terminating."""
    meta, status = pod["metadata"], section(pod, "status")
    ready = evicted = False
    for each in status.get("conditions") or ():
        if each["status"] == "True":
            ready = ready or each["type"] == "Ready"
            evicted = evicted or (each["type"] == "DisruptionTarget" and each.get("reason") == EVICTED)
    return BudgetedPod(meta["uid"], text_map(meta.get("labels")), ready and "deletionTimestamp" not in meta, evicted)


def _wanted(spec: Object) -> tuple[LabelSelector, int] | None:
    """Return the budget's pods, and how many of them it wants; None when it cannot be checked here."""
    least = spec.get("minAvailable")
    if not isinstance(least, int):
        return None
    try:
        return label_selector(spec.get("selector")), least
    except SelectorError:
        return None
