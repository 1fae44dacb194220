# SPDX-License-Identifier: Apache-2.0
"""The scheduler's view at each recorded cycle, from the journal alone.

The cache changes its view by two things only: the api's changes, in the order of their revisions, and its own
operations (`core.messages.events.ViewOperation`), which every cycle's record lists with the revision they came after.
Both are in the journal, so folding them gives the very view that the cycle's snapshot was taken of. No clock, no file,
no actor.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, assert_never

from pumice.core.fold.shown import Shown
from pumice.core.messages.events import (
    AssumedCycle,
    BeganAnew,
    ForgotBind,
    HeldBind,
    HeldEviction,
    Relisted,
    Unevicted,
)
from pumice.core.objects.metadata import Object
from pumice.core.objects.parts import WATCHED
from pumice.core.state.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pumice.core.fold.shown import Change
    from pumice.core.messages.decisions import BindContext, Decision
    from pumice.core.messages.events import CycleRecord, Mutation, ViewOperation

# --- Binds and evictions in flight

"""Namespace and name."""


class Flights:
    """Decisions in flight. `binds`: pod -> (uid, node); `promised`: what the bind of a pod carries; `evictions`: pod ->
    uid.

    A flight that ends well is not reported: the pod shows it.
    """

    def __init__(self) -> None:
        self.binds: dict[Name, tuple[str, str]] = {}
        self.promised: dict[Name, BindContext] = {}
        self.evictions: dict[Name, str] = {}

    def apply(self, event: str, obj: Object, /) -> None:
        """Leave objects to another keeper."""

    def assume(
        self, namespace: str, name: str, node: str, pre_bind: BindContext | None = None, uid: str | None = None, /
    ) -> bool:
        """Note that a bind is in flight."""
        pod = (namespace, name)
        self.binds[pod] = (uid or "", node)
        # A second bind of the pod carries its own additions, or none.
        self.promised.pop(pod, None)
        if pre_bind is not None:
            self.promised[pod] = pre_bind
        return True

    def evicting(self, namespace: str, name: str, uid: str | None = None, /) -> None:
        """Note that an eviction is in flight."""
        self.evictions[namespace, name] = uid or ""

    def forget(self, namespace: str, name: str, uid: str | None = None, /) -> bool:
        """Note that the bind failed or is over."""
        known, _ = self.binds.get((namespace, name), (None, ""))
        if known is None or uid not in (None, known):
            return False
        del self.binds[namespace, name]
        self.promised.pop((namespace, name), None)
        return True

    def unevict(self, namespace: str, name: str, uid: str | None = None, /) -> bool:
        """Note that the eviction failed or is over."""
        known = self.evictions.get((namespace, name))
        if known is None or uid not in (None, known):
            return False
        del self.evictions[namespace, name]
        return True


# --- Changes that one cycle sees together
# Of an object that changed several times, a view need only see the last.

Key = tuple[str, str, str]
"""Kind, namespace and name."""


def show(window: Sequence[Mutation], apply: Callable[[Mutation], bool], watched: Callable[[Mutation], bool]) -> None:
    """Apply changes in order, without those that a later one of the same object makes up for.

    That is all but the last one before a deletion, and before the end. `apply` says whether the object could be read:
    where it could not, what the object was before counts. A change that is `watched` is never left out: it may end a
    flight, which the last one alone does not tell.
    """
    keys = [(mutation.kind, mutation.namespace, mutation.name) for mutation in window]
    # Most windows have no object twice: then nothing can be left out, and the bookkeeping below would cost more.
    if len(set(keys)) == len(keys):
        for mutation in window:
            apply(mutation)
        return
    skipped: dict[Key, list[Mutation]] = {}
    for mutation, key, unneeded in zip(window, keys, _made_up_for(window, keys), strict=True):
        if unneeded and not watched(mutation):
            skipped.setdefault(key, []).append(mutation)
            continue
        before = skipped.pop(key, None)
        if not apply(mutation) and before is not None:
            # The newest readable state before it: a live view had that one when the unreadable change came.
            any(apply(earlier) for earlier in reversed(before))


def _made_up_for(window: Sequence[Mutation], keys: Sequence[Key]) -> list[bool]:
    later: set[Key] = set()
    found: list[bool] = []
    for mutation, key in zip(reversed(window), reversed(keys), strict=True):
        # A deletion always counts: the object after it is another one, with another uid.
        found.append(key in later and mutation.type != "DELETED")
        later.add(key)
    found.reverse()
    return found


Name = tuple[str, str]
"""Namespace ("" for cluster-wide objects) and name."""

KINDS = frozenset(WATCHED)
NEVER = -1


class Past:
    """Folds a journal: what it has read is what the cache had seen at that point.

    `unpack` makes an object of its bytes. `seen`: objects by kind as the view last saw them, in the order in which it
    met them; `flights`: decisions that may still be in flight. Only these are kept until a view is asked for, by
    `with_view` or `materialised`: that is cheap.
    """

    def __init__(self, unpack: Callable[[bytes], Object], *, with_view: bool = False) -> None:
        self._unpack = unpack
        self._shown = Shown(View) if with_view else None
        self._flights = Shown(Flights)
        self.seen: dict[str, dict[Name, bytes]] = {kind: {} for kind in WATCHED}
        self.revision = NEVER
        self.waiting: deque[Mutation] = deque()
        self.listed = False
        self.decided: tuple[int, tuple[Decision, ...]] = (0, ())
        self.newest = 0

    @property
    def view(self) -> View | None:
        """Return the view that the newest cycle saw; None when no view was asked for."""
        return None if self._shown is None else self._shown.view

    @property
    def flights(self) -> Flights:
        """Return what may be in flight."""
        return self._flights.view

    # --- the journal, record by record

    def note(self, mutation: Mutation) -> None:
        """Note a change of the api's truth, which the view will see in some cycle. A change that was written twice
        counts once.
        """
        if mutation.revision > self.newest:
            self.newest = mutation.revision
            # Kinds that no view reads would only fill the queue of waiting changes.
            if mutation.kind in KINDS:
                self.waiting.append(mutation)

    def to_cycle(self, record: CycleRecord) -> None:
        """Bring the view to the state in which the snapshot of this cycle was taken."""
        for operation in record.operations:
            self._operate(operation)
        self._advance(record.revision)

    def decide(self, cycle: int, decisions: tuple[Decision, ...]) -> None:
        """Note the decisions of the cycle; an operation of a later record says when the view assumed them."""
        self.decided = (cycle, decisions)

    # --- the api's changes

    def _advance(self, revision: int) -> None:
        waiting = self.waiting
        window: list[Mutation] = []
        while waiting and waiting[0].revision <= revision:
            mutation = waiting.popleft()
            # Even without a view: a later `materialised` begins from the bytes that were seen.
            self._keep(mutation)
            window.append(mutation)
        if self._shown is not None:
            show(window, self._apply, self._in_flight)
        self.revision = max(self.revision, revision)

    def _keep(self, mutation: Mutation) -> None:
        name = (mutation.namespace, mutation.name)
        if mutation.type == "DELETED":
            self.seen[mutation.kind].pop(name, None)
        else:
            self.seen[mutation.kind][name] = mutation.blob

    def _apply(self, mutation: Mutation) -> bool:
        return self._shown is None or self._shown.see(mutation.type, self._unpack(mutation.blob))

    def _in_flight(self, mutation: Mutation) -> bool:
        view = self.view
        return view is not None and mutation.kind == "Pod" and view.in_flight(mutation.namespace, mutation.name)

    # --- what the cache did by itself

    def _operate(self, operation: ViewOperation) -> None:
        decided: tuple[Decision, ...] = ()
        listed: list[Change] = []
        match operation:
            case BeganAnew():
                self.listed = False  # a new view lists before anything else, so it meets the objects anew, too
            case Relisted():
                listed = self._relist(operation)
            case AssumedCycle() | HeldBind() | HeldEviction() | ForgotBind() | Unevicted():
                self._advance(operation.revision)
            case _:
                assert_never(operation)
        if isinstance(operation, AssumedCycle) and self.decided[0] == operation.cycle:
            decided = self.decided[1]
        self._flights.operate(operation, decided)
        if self._shown is not None:
            self._shown.operate(operation, decided, listed)

    def _relist(self, operation: Relisted) -> list[Change]:
        """Apply all objects that existed when each kind was listed, vanished ones first."""
        before = WATCHED if self.listed else ()
        known = {(kind, *name) for kind in before for name in self.seen[kind]}
        listed = operation.listed or dict.fromkeys(WATCHED, operation.revision)
        rows = [(kind, name, blob) for kind, at in listed.items() for name, blob in self._as_of(kind, at)]
        gone = sorted(known - {(kind, *name) for kind, name, _ in rows})
        for kind, namespace, last in gone:
            self.seen[kind].pop((namespace, last), None)
        if not self.listed:
            self.seen = {kind: {} for kind in WATCHED}
        for kind, name, blob in rows:
            self.seen[kind][name] = blob
        while self.waiting and self.waiting[0].revision <= operation.revision:
            self.waiting.popleft()
        self.revision = max(self.revision, operation.revision)
        self.listed = True
        return [] if self._shown is None else [*map(_vanished, gone), *(self._listed(blob) for _, _, blob in rows)]

    def _listed(self, blob: bytes) -> Change:
        return "MODIFIED", self._unpack(blob)

    def _as_of(self, kind: str, revision: int) -> list[tuple[Name, bytes]]:
        found = dict(self.seen[kind])
        for mutation in self.waiting:
            if mutation.kind == kind and mutation.revision <= revision:
                name = (mutation.namespace, mutation.name)
                if mutation.type == "DELETED":
                    found.pop(name, None)
                else:
                    found[name] = mutation.blob
        return sorted(found.items())

    # --- from a checkpoint on

    def prune(self) -> None:
        """Drop decisions that are no longer in flight: the api shows them, or the pod is gone or is another one."""
        flights = self.flights
        for pod in [pod for pod, (uid, _) in flights.binds.items() if not self._waits(pod, uid)]:
            flights.forget(*pod)
        for pod in [
            pod for pod, uid in flights.evictions.items() if self._pod(pod).get("metadata", {}).get("uid") != uid
        ]:
            flights.unevict(*pod)

    def materialised(self) -> Past:
        """Return this past with a view, made of the objects and of the decisions in flight."""
        self.prune()
        self._shown = Shown(View)
        for _, blob in self.objects():
            self._shown.see("ADDED", self._unpack(blob))
        view, flights = self._shown.view, self.flights
        for pod, (_, node) in flights.binds.items():
            view.assume(*pod, node, flights.promised.get(pod))
        for pod in flights.evictions:
            view.evicting(*pod)
        return self

    def objects(self) -> Iterator[tuple[str, bytes]]:
        """Yield kind and blob of everything that the view knows, references first."""
        for kind in WATCHED:
            for blob in self.seen[kind].values():
                yield kind, blob

    def _pod(self, pod: Name) -> Object:
        blob = self.seen["Pod"].get(pod)
        return self._unpack(blob) if blob else {}

    def _waits(self, pod: Name, uid: str) -> bool:
        obj = self._pod(pod)
        return obj.get("metadata", {}).get("uid") == uid and not obj.get("spec", {}).get("nodeName")


def _vanished(name: tuple[str, str, str]) -> Change:
    kind, namespace, last = name
    return "DELETED", {"kind": kind, "metadata": {"namespace": namespace, "name": last}}
