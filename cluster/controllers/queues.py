# SPDX-License-Identifier: Apache-2.0
"""The Queue controller as a pure machine: states, and queues that open and close with their parents.

Source: Volcano's `pkg/controllers/queue`. As there, how many PodGroups of a queue are in which phase is a metric
(`pumice.actors.gateway.handlers.health`) and not in the status.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from pumice.cluster.controllers.commands import PendingCommands
from pumice.cluster.machine import Machine
from pumice.core.life.cycle import LifeCycle
from pumice.core.messages.commands import ApiRequest, Delete, Patch, UpdateStatus
from pumice.core.messages.replies import Accepted, ApiReply
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.objects.parts import CLOSED_BY_PARENT, GROUP_SPECS, QUEUE_FAMILIES
from pumice.storage.codec import repack, unpack

# --- The life of a Queue
# Source: Volcano's `pkg/controllers/queue/state`. A queue that is to be closed is Closing while it has PodGroups.


class QueueState(StrEnum):
    """States of status.state; an empty one counts as OPEN."""

    OPEN = "Open"
    CLOSED = "Closed"
    CLOSING = "Closing"
    UNKNOWN = "Unknown"


class QueueAction(StrEnum):
    """Action that a command, or a change of PodGroups, asks of a queue."""

    SYNC = "SyncQueue"
    OPEN = "OpenQueue"
    CLOSE = "CloseQueue"


class QueueTrigger(StrEnum):
    """Trigger of a queue's transition: the action, and whether the queue has PodGroups."""

    OPENED = "opened"
    CLOSED_EMPTY = "closed, and no PodGroup is in it"
    CLOSED_IN_USE = "closed while PodGroups are in it"
    EMPTIED = "no PodGroup is left in it"


_S, _T = QueueState, QueueTrigger

QUEUE_LIFE: Final = LifeCycle(
    {
        (_S.OPEN, _T.CLOSED_EMPTY): _S.CLOSED,
        (_S.OPEN, _T.CLOSED_IN_USE): _S.CLOSING,
        (_S.CLOSED, _T.OPENED): _S.OPEN,
        (_S.CLOSING, _T.OPENED): _S.OPEN,
        (_S.CLOSING, _T.CLOSED_EMPTY): _S.CLOSED,
        (_S.CLOSING, _T.EMPTIED): _S.CLOSED,
        (_S.UNKNOWN, _T.OPENED): _S.OPEN,
        (_S.UNKNOWN, _T.CLOSED_EMPTY): _S.CLOSED,
        (_S.UNKNOWN, _T.CLOSED_IN_USE): _S.CLOSING,
    }
)
"""A pair that is not here changes nothing: a PodGroup that comes late does not make a closed queue wait again."""

_TRIGGERS: Final[dict[QueueAction, tuple[QueueTrigger | None, QueueTrigger | None]]] = {
    QueueAction.SYNC: (QueueTrigger.EMPTIED, None),
    QueueAction.OPEN: (QueueTrigger.OPENED, QueueTrigger.OPENED),
    QueueAction.CLOSE: (QueueTrigger.CLOSED_EMPTY, QueueTrigger.CLOSED_IN_USE),
}
_BY_TEXT: Final = {"": QueueState.OPEN, **{str(state): state for state in QueueState}}


def state_of(text: str) -> QueueState:
    """Return the state of a queue: Open without one, Unknown for a state that is not valid."""
    return _BY_TEXT.get(text, QueueState.UNKNOWN)


def trigger_of(action: QueueAction, *, has_pod_groups: bool) -> QueueTrigger | None:
    """Return the trigger for an action; None when the action changes nothing in any state."""
    return _TRIGGERS[action][has_pod_groups]


USER: Final = "queue-controller"
_SHUT: Final = (QueueState.CLOSED, QueueState.CLOSING)


class QueueMachine(Machine):
    """Keeps queues' states. `read`: `unpack`, or an equal function whose result must not be changed."""

    kinds = (QUEUE_FAMILIES, GROUP_SPECS, "Command")

    def __init__(self, read: Callable[[bytes], Object] = unpack) -> None:
        self._read = read
        self._queues: dict[str, Object] = {}
        self._groups: dict[tuple[str, str], tuple[str, int]] = {}  # the queue, and the revision that says so
        self._counts: Counter[str] = Counter()  # PodGroups by queue
        self._commands = PendingCommands("Queue", frozenset(QueueAction), USER)
        self._dirty: dict[str, QueueAction] = {}

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        match kind:
            case "Queue":
                self._queue(obj, deleted=deleted)
            case "PodGroup":
                self._pod_group(obj, revision, deleted=deleted)
            case "Command":
                self._commands.observe(obj, deleted=deleted)
            case _:
                pass

    def _queue(self, queue: Object, *, deleted: bool) -> None:
        name = queue["metadata"]["name"]
        if deleted:
            self._queues.pop(name, None)
            self._dirty.pop(name, None)
            return
        old = self._queues.get(name)
        # The answer to an own write comes before the watch brings the same.
        if old is not None and _revision(queue) <= _revision(old):
            return
        self._queues[name] = queue
        self._look_at(name)
        if old is None or _state(old) != _state(queue):
            # children open and close with their parent
            for child in self._children(name):
                self._look_at(child)

    def _pod_group(self, group: Object, revision: int, *, deleted: bool) -> None:
        key = (group["metadata"].get("namespace", ""), group["metadata"]["name"])
        known = self._groups.get(key)
        if known is not None and revision <= known[1]:
            return
        if known is not None:
            self._count(known[0], -1)
        if deleted:
            self._groups.pop(key, None)
            return
        queue = section(group, "spec").get("queue") or "default"
        self._groups[key] = queue, revision
        self._count(queue, 1)

    def _count(self, queue: str, by: int) -> None:
        self._counts[queue] += by
        if not self._counts[queue]:
            del self._counts[queue]
        # a queue that is Closing can be Closed once its last PodGroup is gone
        self._look_at(queue)

    def _look_at(self, name: str) -> None:
        # An action that a Command asked for stays: a look alone must not replace it.
        self._dirty.setdefault(name, QueueAction.SYNC)

    def _children(self, parent: str) -> list[str]:
        # All queues are gone through, since a queue seldom changes its state.
        return [name for name, queue in self._queues.items() if section(queue, "spec").get("parent") == parent]

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        requests = self._commands.withdrawals()
        dirty, self._dirty = self._dirty, {}
        for name, action in dirty.items():
            queue = self._queues.get(name)
            if queue is not None:
                requests += self._act(name, queue, action)
        return requests

    def _act(self, name: str, queue: Object, action: QueueAction) -> list[ApiRequest]:
        requests: list[ApiRequest] = []
        action, closed_by_parent = self._with_parent(name, queue, action)
        state = _state(queue)
        trigger = trigger_of(action, has_pod_groups=self._counts[name] > 0)
        after = state if trigger is None else QUEUE_LIFE.after(state, trigger)
        if after != section(queue, "status").get("state"):
            requests.append(UpdateStatus("Queue", "", name, repack({"state": str(after)}), user=USER))
        if closed_by_parent is not None:
            annotations = {"metadata": {"annotations": {CLOSED_BY_PARENT: closed_by_parent}}}
            # Before the status: the webhook refuses every change of a Closing queue (queue_controller_action.go).
            place = 0 if closed_by_parent == "true" else len(requests)
            requests.insert(place, Patch("Queue", "", name, repack(annotations), user=USER))
        return requests

    def _with_parent(self, name: str, queue: Object, action: QueueAction) -> tuple[QueueAction, str | None]:
        """Return the action by which a queue follows its parent; the root never closes, and no queue opens below a
        closed one.

        Also what the annotation that remembers this is to say; None: it may stay.
        """
        if name == "root":
            return QueueAction.SYNC if action is QueueAction.CLOSE else action, None
        parent = self._queues.get(section(queue, "spec").get("parent") or "root")
        shut = parent is not None and _state(parent) in _SHUT
        by_parent = text_map(queue["metadata"].get("annotations")).get(CLOSED_BY_PARENT)
        if shut:
            if _state(queue) in _SHUT:
                return (QueueAction.SYNC if action is QueueAction.OPEN else action), None
            return QueueAction.CLOSE, None if by_parent == "true" else "true"
        if action is QueueAction.SYNC and by_parent == "true" and _state(queue) in _SHUT:
            action = QueueAction.OPEN
        return action, "false" if action is QueueAction.OPEN and by_parent == "true" else None

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:
        """Take the answer to one request of the last step; answers come in order, before the next step."""
        if isinstance(request, UpdateStatus):
            if isinstance(reply, Accepted):  # the watch does not bring it
                self._queue(self._read(reply.blob), deleted=False)
        elif isinstance(request, Delete) and (taken := self._commands.answered(request, reply)):
            self._dirty[taken[1]] = QueueAction(taken[2])


def _state(queue: Object) -> QueueState:
    return state_of(section(queue, "status").get("state") or "")


def _revision(queue: Object) -> int:
    return int(queue["metadata"]["resourceVersion"])
