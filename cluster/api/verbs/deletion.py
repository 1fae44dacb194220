# SPDX-License-Identifier: Apache-2.0
"""Deletion: grace periods, finalizers, and owned objects (Kubernetes' garbage collector).

Pods go gracefully, as in Kubernetes: one that was never placed, or has ended, goes immediately; a placed one is marked
with a deletion time and stays until its node agent deletes it with grace 0. Dependents go with the last of their owners
("Background"), before it ("Foreground"), or stay without it ("Orphan").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from pumice.cluster.api.definitions.naming import is_accepted, key_of
from pumice.cluster.api.kinds import VOLCANOS
from pumice.cluster.api.object_tables import Key, ObjectTables, owner_uids
from pumice.cluster.api.verbs.requests import RequestMoment
from pumice.cluster.api.verbs.terminating import NAMESPACE, waits_for_others, with_conditions
from pumice.cluster.kube.statuses import timestamp
from pumice.core.life.task import ENDED_PHASES
from pumice.core.objects.metadata import Object, rows, section

DEFAULT_GRACE_S: Final = 30
FOREGROUND: Final = "foregroundDeletion"
POD: Final = "Pod"
DEFINITION: Final = "CustomResourceDefinition"
_DEFINED: Final = frozenset(VOLCANOS.values())

T = TypeVar("T")


def grace_period_s(pod: Object, asked: int | None) -> int:
    """Return the seconds that a pod gets to end: the requested ones, otherwise its own; 0 when no container runs."""
    spec = section(pod, "spec")
    # no kubelet has anything to stop (`CheckGracefulDelete` of pods)
    if not spec.get("nodeName") or section(pod, "status").get("phase") in ENDED_PHASES:
        return 0
    seconds = asked if asked is not None else spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_S)
    # a negative period counts as one second, as in Kubernetes
    return 1 if seconds < 0 else int(seconds)


class Deletion:
    """Deletes; every removal cascades to objects that the removed one alone owned, and ends deletions that waited for
    it.

    What follows from a deletion is done in turn, not by recursion: a chain of owners may be long.
    """

    def __init__(self, tables: ObjectTables) -> None:
        self._tables = tables
        self._next: deque[Callable[[], None]] = deque()
        self._at_work = False
        self._emptied: set[str] = set()  # namespaces that are being deleted and do not wait for pods

    def delete(
        self, key: Key, obj: Object, asked_grace_s: int | None, moment: RequestMoment, propagation: str = "Background"
    ) -> bytes:
        """Start or finish a deletion, and return the object's bytes while it stays, "" once it has gone. `obj` is
        changed.
        """
        uid: str = obj["metadata"]["uid"]
        grace = grace_period_s(obj, asked_grace_s) if key[0] == POD else 0
        if propagation == "Orphan":
            self._let_go(uid, moment)
        # an owner of nothing has nothing to wait for, and goes as in the background
        if propagation == "Foreground" and self._tables.dependents(uid):
            self._foreground(key, obj, grace, moment)
        elif self._held(key, obj) or waits_for_others(key, obj):
            self._mark(key, obj, 0, moment)
            self._follow(self._empty, key, moment)
        elif grace or obj["metadata"].get("finalizers"):
            self._mark(key, obj, grace, moment)
        else:
            self._remove(key, obj, moment)
        self._work()
        return self._blob(key)

    def announce(self, key: Key, namespace: Object, moment: RequestMoment) -> bytes:
        """Mark a namespace, which is emptied later; an empty one is removed immediately."""
        if not self._held(key, namespace):
            return self.delete(key, namespace, None, moment)
        # marked immediately: while it waits to be emptied it takes no new objects (NamespaceLifecycle)
        self._mark(key, namespace, 0, moment)
        return self._blob(key)

    def remove(self, key: Key, obj: Object, moment: RequestMoment) -> None:
        """Take it away now, and everything that it alone owned."""
        self._remove(key, obj, moment)
        self._work()

    def finalized(self, key: Key, moment: RequestMoment) -> None:
        """Continue a namespace's deletion: a finalizer may have been removed."""
        self._finish_holder(key, moment)
        self._work()

    def orphaned(self, key: Key, moment: RequestMoment) -> None:
        """Delete the object if every one of its owners has gone; otherwise remove the gone ones from it.

        Source: Kubernetes' garbage collector (attemptToDeleteItem).
        """
        obj = self._tables.read(key)
        if obj is None:
            return
        owners = owner_uids(obj)
        gone = {uid for uid in owners if self._tables.was_removed(uid)}
        if not gone:
            return
        if gone == owners:
            self.delete(key, obj, None, moment)
        else:
            self._disown(key, obj, gone, moment)

    def _remove(self, key: Key, obj: Object, moment: RequestMoment) -> None:
        uid: str = obj["metadata"]["uid"]
        # before the dependents are looked at: `orphaned` asks whether their owner was removed
        self._tables.remove(key, obj, moment.user)
        for dependent in self._tables.dependents(uid):
            self._follow(self.orphaned, dependent, moment)
        # it may have been the last dependent that one of its owners waited for
        for reference in rows(section(obj, "metadata"), "ownerReferences"):
            self._follow(self._finish_foreground, reference["uid"], moment)
        if key[1]:
            self._leave_namespace(key, moment)
        # the last object of a defined kind: its definition may be waiting for that
        if (key[0] in _DEFINED or "." in key[0]) and not self._tables.count(key[0]):
            for _, name in self._tables.names(DEFINITION):
                self._follow(self._finish_holder, (DEFINITION, "", name), moment)

    def _follow(self, step: Callable[[T, RequestMoment], None], about: T, moment: RequestMoment) -> None:
        self._next.append(partial(step, about, moment))

    def _work(self) -> None:
        # a step that deletes comes here again: what follows from it waits in the same queue
        if self._at_work:
            return
        self._at_work = True
        try:
            while self._next:
                self._next.popleft()()
        finally:
            self._at_work = False
            # what is left after an error belongs to a request that has failed
            self._next.clear()

    def _mark(self, key: Key, obj: Object, grace_s: int, moment: RequestMoment) -> None:
        meta: Object = obj["metadata"]
        if "deletionTimestamp" in meta and grace_s >= meta.get("deletionGracePeriodSeconds", 0):
            return  # a later request may shorten the wait, never lengthen it
        meta["deletionTimestamp"] = timestamp(int(moment.now) + grace_s)
        meta["deletionGracePeriodSeconds"] = grace_s
        if key[0] == NAMESPACE:
            obj["status"] = {**section(obj, "status"), "phase": "Terminating"}
        self._tables.put_again(key, obj, moment.user)

    def _blob(self, key: Key) -> bytes:
        record = self._tables.get(key)
        return b"" if record is None else record.blob

    # --- dependents first

    def _foreground(self, key: Key, obj: Object, grace_s: int, moment: RequestMoment) -> None:
        """Mark the owner, delete its dependents, and let it go with the last that blocks it."""
        meta: Object = obj["metadata"]
        uid: str = meta["uid"]
        finalizers: list[str] = meta.get("finalizers") or []
        if FOREGROUND not in finalizers:
            meta["finalizers"] = [*finalizers, FOREGROUND]
            meta.pop("deletionTimestamp", None)  # so that it is marked, and written, even if it was before
        self._mark(key, obj, grace_s, moment)
        for dependent in self._tables.dependents(uid):
            self._follow(self._delete_first, dependent, moment)
        self._follow(self._finish_foreground, uid, moment)

    def _delete_first(self, key: Key, moment: RequestMoment) -> None:
        """Delete a dependent, unless another of its owners stays: then it lets go of those that do not.

        Source: Kubernetes' garbage collector (attemptToDeleteItem).
        """
        obj = self._tables.read(key)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return
        owners = owner_uids(obj)
        going = {uid for uid in owners if self._is_going(uid)}
        if going == owners:
            # its own dependents go before it, too (`attemptToDeleteItem`)
            self.delete(key, obj, None, moment, "Foreground")
        else:
            self._disown(key, obj, going, moment)

    def _is_going(self, uid: str) -> bool:
        """Return whether an owner is gone, or waits for its dependents to be gone."""
        key = self._tables.key_of(uid)
        owner = None if key is None else self._tables.read(key)
        if owner is None:
            return True
        meta = owner["metadata"]
        return "deletionTimestamp" in meta and FOREGROUND in (meta.get("finalizers") or ())

    def _finish_foreground(self, uid: str, moment: RequestMoment) -> None:
        """End the deletion of an owner that waited for its dependents, when no blocking one is left."""
        key = self._tables.key_of(uid)
        obj = None if key is None else self._tables.read(key)
        if key is None or obj is None:
            return
        meta = obj["metadata"]
        if "deletionTimestamp" not in meta or FOREGROUND not in (meta.get("finalizers") or ()):
            return
        if any(self._blocks(dependent, uid) for dependent in self._tables.dependents(uid)):
            return
        meta["finalizers"] = [name for name in meta["finalizers"] if name != FOREGROUND]
        # this finalizer goes alone: other finalizers, or a node agent, still hold the object
        if meta["finalizers"] or meta.get("deletionGracePeriodSeconds"):
            self._tables.put_again(key, obj, moment.user)
        else:
            self._remove(key, obj, moment)

    def _blocks(self, dependent: Key, uid: str) -> bool:
        obj = self._tables.read(dependent)
        references = [] if obj is None else rows(section(obj, "metadata"), "ownerReferences")
        # other dependents are deleted as well, but the owner does not wait for them
        blocks = any(each["uid"] == uid and each.get("blockOwnerDeletion") for each in references)
        return blocks and obj is not None and not self._waits_for(obj["metadata"], uid)

    def _waits_for(self, meta: Object, uid: str) -> bool:
        """Return whether the owner of this metadata waits in turn for the object of that uid: such circles are cut."""
        if FOREGROUND not in (meta.get("finalizers") or ()):
            return False
        seen: set[str] = set()
        left = [uid]
        while left:
            each = left.pop()
            key = None if each in seen else self._tables.key_of(each)
            seen.add(each)
            owner = None if key is None else self._tables.read(key)
            left += [] if owner is None else owner_uids(owner)
        return meta["uid"] in seen

    # --- dependents left behind

    def _let_go(self, uid: str, moment: RequestMoment) -> None:
        for dependent in self._tables.dependents(uid):
            obj = self._tables.read(dependent)
            if obj is not None:
                self._disown(dependent, obj, {uid}, moment)

    def _disown(self, key: Key, obj: Object, gone: set[str], moment: RequestMoment) -> None:
        meta = obj["metadata"]
        left = [reference for reference in rows(meta, "ownerReferences") if reference["uid"] not in gone]
        meta.pop("ownerReferences", None)
        if left:
            meta["ownerReferences"] = left
        self._tables.put(key, obj, moment.user)

    # --- what holds others: a namespace its objects, a definition those of its kind

    def _held(self, key: Key, obj: Object) -> list[Key]:
        if key[0] == NAMESPACE:
            # the number is known, while `inside` looks through every kind
            return self._tables.inside(key[2]) if self._tables.in_namespace(key[2]) else []
        if key[0] == DEFINITION and is_accepted(obj):
            defined = key_of(obj)
            return [(defined, *name) for name, _ in self._tables.of_kind(defined)]
        return []

    def _empty(self, holder: Key, moment: RequestMoment) -> None:
        """Delete the content of a holder, which goes with the last object. While finalizers keep pods of a namespace,
        all else in it stays for the controllers that remove them.
        """
        obj = self._tables.read(holder)
        held = [] if obj is None else self._held(holder, obj)
        kept = self._kept_pods(held) if holder[0] == NAMESPACE else []
        for key in held:
            if not kept or key[0] == POD:
                self._follow(self._delete_held, key, moment)
        if holder[0] == NAMESPACE:
            (self._emptied.discard if kept else self._emptied.add)(holder[2])
            self._follow(self._say_what_remains, holder, moment)

    def _leave_namespace(self, key: Key, moment: RequestMoment) -> None:
        """Continue the deletion of a namespace: it ends with its last object, and goes on with the others after its
        last kept pod.
        """
        holder = (NAMESPACE, "", key[1])
        if not self._tables.in_namespace(key[1]):
            self._emptied.discard(key[1])
            self._follow(self._finish_holder, holder, moment)
        # `_emptied` spares a look through all kinds at every pod that leaves a namespace
        elif key[0] == POD and key[1] not in self._emptied and self._waits_for_pods(holder):
            self._follow(self._empty, holder, moment)

    def _waits_for_pods(self, holder: Key) -> bool:
        """Return whether a namespace is being deleted and may have held pods until now."""
        namespace = self._tables.shared(holder)
        if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
            return False
        return not self._kept_pods(self._held(holder, namespace))

    def _kept_pods(self, held: list[Key]) -> list[Key]:
        pods = ((key, self._tables.shared(key)) for key in held if key[0] == POD)
        return [key for key, pod in pods if pod is not None and pod["metadata"].get("finalizers")]

    def _say_what_remains(self, holder: Key, moment: RequestMoment) -> None:
        namespace = self._tables.read(holder)
        if namespace is not None and (held := self._held(holder, namespace)):
            told = with_conditions(self._tables, namespace, held, timestamp(int(moment.now)))
            if told is not None:
                self._tables.put_again(holder, told, moment.user)

    def _delete_held(self, key: Key, moment: RequestMoment) -> None:
        obj = self._tables.read(key)
        if obj is not None and "deletionTimestamp" not in obj["metadata"]:
            self.delete(key, obj, None, moment)

    def _finish_holder(self, key: Key, moment: RequestMoment) -> None:
        obj = self._tables.read(key)
        if obj is None or "deletionTimestamp" not in obj["metadata"] or obj["metadata"].get("finalizers"):
            return
        if not self._held(key, obj) and not waits_for_others(key, obj):
            self._remove(key, obj, moment)
