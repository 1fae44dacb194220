"""The scheduler's view as it was at each recorded cycle, from the journal alone.

The cache actor changes its view by two things only: the api's changes, in the order of their revisions, and its own
operations (`ViewOperation`), which every cycle record lists with the revision they came after. Both are in the journal,
so folding them gives the very view that the cycle's snapshot was taken of. Pure: no clock, no file, no actor.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from config.errors import RequestError
from core.messages.decisions import Bind
from core.state.view import View
from core.state.watched import WATCHED
from storage import codec
from storage.window import show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from core.messages.decisions import BindContext, Decision
    from core.messages.events import CycleRecord, Mutation, ViewOperation

Object = dict[str, Any]
Name = tuple[str, str]
"""Namespace ("" for cluster-wide objects) and name."""

KINDS = frozenset(WATCHED)
NEVER = -1


class Past:
    """`seen`: objects by kind as the view last saw them, in the order in which it met them.

    `assumed` and `evicting` are decisions that may still be in flight: pod -> (uid, node), pod -> uid; `promised` is
    what the claims of assumed pods were promised. Without `view` only these are kept, which is cheap; `materialised`
    makes a view of them at any time.
    """

    def __init__(self, view: View | None = None) -> None:
        self.view = view
        self.seen: dict[str, dict[Name, bytes]] = {kind: {} for kind in WATCHED}
        self.revision = NEVER
        self.waiting: deque[Mutation] = deque()
        self.assumed: dict[Name, tuple[str, str]] = {}
        self.promised: dict[Name, BindContext] = {}
        self.evicting: dict[Name, str] = {}
        self.listed = False
        self.decided: tuple[int, tuple[Decision, ...]] = (0, ())
        self.newest = 0

    # --- the journal, record by record

    def note(self, mutation: Mutation) -> None:
        """A change of the api's truth, which the view will see some cycle. One that was written twice counts once."""
        if mutation.revision > self.newest:
            self.newest = mutation.revision
            if mutation.kind in KINDS:
                self.waiting.append(mutation)

    def to_cycle(self, record: CycleRecord) -> None:
        """Bring the view to where it was when the snapshot of this cycle was taken."""
        for operation in record.operations:
            self._operate(operation)
        self._advance(record.revision)

    def decide(self, cycle: int, decisions: tuple[Decision, ...]) -> None:
        """The cycle decided this; an operation of a later record says when the view assumed it."""
        self.decided = (cycle, decisions)

    # --- the api's changes

    def _advance(self, revision: int) -> None:
        waiting = self.waiting
        window: list[Mutation] = []
        while waiting and waiting[0].revision <= revision:
            mutation = waiting.popleft()
            self._keep(mutation)
            window.append(mutation)
        if self.view is not None:
            show(window, self._apply, self._in_flight)
        self.revision = max(self.revision, revision)

    def _keep(self, mutation: Mutation) -> None:
        name = (mutation.namespace, mutation.name)
        if mutation.type == "DELETED":
            self.seen[mutation.kind].pop(name, None)
        else:
            self.seen[mutation.kind][name] = mutation.blob

    def _apply(self, mutation: Mutation) -> bool:
        return self.view is None or apply(self.view, mutation.type, codec.unpack(mutation.blob))

    def _in_flight(self, mutation: Mutation) -> bool:
        if self.view is None or mutation.kind != "Pod":
            return False
        return self.view.in_flight(mutation.namespace, mutation.name)

    # --- what the cache did by itself

    def _operate(self, operation: ViewOperation) -> None:
        match operation.operation:
            case "anew":
                self._anew()
            case "relist":
                self._relist(operation)
            case "assume":
                self._advance(operation.revision)
                if self.decided[0] == operation.cycle:
                    self._assume(self.decided[1])
            case "hold" | "hold-eviction":
                self._advance(operation.revision)
                self._hold(operation)
            case _:
                self._advance(operation.revision)
                self._give_up(operation)

    def _anew(self) -> None:
        """A new view. It lists before anything else, so it meets the objects anew, too."""
        self.view = None if self.view is None else View()
        self.listed = False
        self.assumed.clear()
        self.promised.clear()
        self.evicting.clear()

    def _relist(self, operation: ViewOperation) -> None:
        """All objects there were when each kind was listed, those that had vanished first."""
        before = WATCHED if self.listed else ()
        known = {(kind, *name) for kind in before for name in self.seen[kind]}
        listed = operation.listed or dict.fromkeys(WATCHED, operation.revision)
        rows = [(kind, name, blob) for kind, at in listed.items() for name, blob in self._as_of(kind, at)]
        present = {(kind, *name) for kind, name, _ in rows}
        for kind, namespace, last in sorted(known - present):
            gone = {"kind": kind, "metadata": {"namespace": namespace, "name": last}}
            self._see("DELETED", gone)
            self.seen[kind].pop((namespace, last), None)
        for _, _, blob in rows:
            self._see("MODIFIED", codec.unpack(blob))
        if not self.listed:
            self.seen = {kind: {} for kind in WATCHED}
        for kind, name, blob in rows:
            self.seen[kind][name] = blob
        while self.waiting and self.waiting[0].revision <= operation.revision:
            self.waiting.popleft()
        self.revision = max(self.revision, operation.revision)
        self.listed = True

    def _see(self, event: str, obj: Object) -> None:
        if self.view is not None:
            apply(self.view, event, obj)

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

    def _assume(self, decisions: tuple[Decision, ...]) -> None:
        for decision in decisions:
            pod = (decision.namespace, decision.name)
            if isinstance(decision, Bind):
                self._place(pod, decision.uid, decision.node, decision.pre_bind)
            else:
                self._release(pod, decision.uid)

    def _hold(self, operation: ViewOperation) -> None:
        pod = (operation.namespace, operation.name)
        if operation.operation == "hold":
            self._place(pod, operation.uid, operation.node, operation.pre_bind)
        else:
            self._release(pod, operation.uid)

    def _place(self, pod: Name, uid: str, node: str, pre_bind: BindContext | None) -> None:
        self.assumed[pod] = (uid, node)
        if pre_bind is not None:
            self.promised[pod] = pre_bind
        if self.view is not None:
            self.view.assume(*pod, node, pre_bind, uid)

    def _release(self, pod: Name, uid: str) -> None:
        self.evicting[pod] = uid
        if self.view is not None:
            self.view.evicting(*pod, uid)

    def _give_up(self, operation: ViewOperation) -> None:
        pod = (operation.namespace, operation.name)
        bind = operation.operation == "forget"
        if bind:
            self.assumed.pop(pod, None)
            self.promised.pop(pod, None)
        else:
            self.evicting.pop(pod, None)
        if self.view is not None:
            (self.view.forget if bind else self.view.unevict)(*pod)

    # --- from a checkpoint on

    def prune(self) -> None:
        """Drop what is no longer in flight: the api shows it, or the pod is gone or another one."""
        for pod in [pod for pod, (uid, _) in self.assumed.items() if not self._waits(pod, uid)]:
            del self.assumed[pod]
            self.promised.pop(pod, None)
        for pod in [pod for pod, uid in self.evicting.items() if self._pod(pod).get("metadata", {}).get("uid") != uid]:
            del self.evicting[pod]

    def materialised(self) -> Past:
        """The same with a view, made of the objects and of what is in flight."""
        self.prune()
        view = View()
        for _, blob in self.objects():
            apply(view, "ADDED", codec.unpack(blob))
        for pod, (_, node) in self.assumed.items():
            view.assume(*pod, node, self.promised.get(pod))
        for pod in self.evicting:
            view.evicting(*pod)
        self.view = view
        return self

    def objects(self) -> Iterator[tuple[str, bytes]]:
        """Kind and blob of everything the view knows, references first."""
        for kind in WATCHED:
            for blob in self.seen[kind].values():
                yield kind, blob

    def _pod(self, pod: Name) -> Object:
        blob = self.seen["Pod"].get(pod)
        return codec.unpack(blob) if blob else {}

    def _waits(self, pod: Name, uid: str) -> bool:
        obj = self._pod(pod)
        return obj.get("metadata", {}).get("uid") == uid and not obj.get("spec", {}).get("nodeName")


def apply(view: View, event: str, obj: Object) -> bool:
    """As the cache does it: an object nobody can read is left out. Whether it was read."""
    try:
        view.apply(event, obj)
    except RequestError:
        return False
    return True
