# SPDX-License-Identifier: Apache-2.0
"""Answers to an ask: nouns."""

from __future__ import annotations

from msgspec import field

from pumice.core.messages.commands import FaultsRead, Pulled, RevisionRead
from pumice.core.messages.events import ViewOperation
from pumice.core.messages.message import Message
from pumice.core.objects.metadata import Object


class Accepted(Message, frozen=True):
    """The api did it (or would have: dry run). `blob` is the object after it, as MessagePack; empty after a delete, a
    binding and a report.

    `created`: an apply made a new object. `uid`: of the object that a delete has removed.
    """

    revision: int
    blob: bytes = b""
    created: bool = False
    uid: str = ""


class Refused(Message, frozen=True):
    """The api refused: code, reason and message as in a Kubernetes Status; `details` as in status.details.

    `revision`: of an object that has changed, where its reporter needs only that to try again; where one
    object is asked for, the revision at which it does not exist.
    """

    code: int
    reason: str
    message: str
    details: Object = field(default_factory=Object)
    revision: int = 0


class Listing(Message, frozen=True):
    """Objects of one kind as MessagePack, ordered by namespace and name, as of `revision`."""

    revision: int
    blobs: tuple[bytes, ...] = ()


class ListingOpened(Message, frozen=True):
    """A listing (tuple of blobs, ordered by namespace and name) is held under `handle`, as of `revision`."""

    handle: int
    revision: int
    count: int


ApiReply = Accepted | Refused | Listing | ListingOpened | Pulled | RevisionRead | FaultsRead


class Appended(Message, frozen=True):
    """The records are on disk under the sequence numbers first..last (0, 0 for none)."""

    first: int
    last: int


class SnapshotTaken(Message, frozen=True):
    """A snapshot lies in the registry under `handle`; 0 when the cycle would be a no-op and needs none.

    `version` is the view's version, `revision` the last api revision it has seen. `operations` are the cache's own
    changes to the view since the last snapshot, in order (`pumice.core.messages.events`), which a replay needs.
    """

    handle: int
    version: int
    revision: int
    operations: tuple[ViewOperation, ...] = ()


class Assumed(Message, frozen=True):
    """The view holds the cycle's decisions; `missing` are uids of binds whose pod is gone or already placed."""

    version: int
    missing: tuple[str, ...] = ()


class ActionDone(Message, frozen=True):
    """An action has run to its end; the baton is back."""

    session: int
    action: str
    seconds: float


class ActionFailed(Message, frozen=True):
    """An action raised; the session is lost."""

    session: int
    action: str
    error: str


class Candidates(Message, frozen=True):
    """The findings of a dry run in one chunk: (row in offset order, the finding as MessagePack), in chunk order."""

    request: int
    chunk: int
    found: tuple[tuple[int, bytes], ...] = ()


class DryRunFailed(Message, frozen=True):
    """The pure function raised on this chunk."""

    request: int
    chunk: int
    error: str


class ViewChecked(Message, frozen=True):
    """The broken invariants of the view as of `revision`; empty when it is whole."""

    problems: tuple[str, ...] = ()
    revision: int = 0


class Exposition(Message, frozen=True):
    """Metrics in the Prometheus text format."""

    text: bytes


class Done(Message, frozen=True):
    """The message was carried out; there is no answer."""


class Failed(Message, frozen=True):
    """The receiver could not answer: it stopped or crashed while the message was with it."""

    actor: str
    error: str
    stopped: bool = False
    world: bool = False
    """Nothing is wrong with the receiver: the outside world failed (a disk is full), and `error` says so in words."""
