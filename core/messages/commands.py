# SPDX-License-Identifier: Apache-2.0
"""Commands, one closed union a receiver: ApiRequest, CacheCommand, RecorderCommand, and so on."""

from __future__ import annotations

import math
from typing import Final

from msgspec import Struct, field

from pumice.core.messages.boards import ReadBoard, ReadRecent, ReadResidents
from pumice.core.messages.decisions import Bind, Evict, PodCondition, PodGroupEvent, PodGroupStatus, QueueStatus
from pumice.core.messages.message import Message
from pumice.core.state.volumes import USUAL, VolumeRules

# --- Watches


class Pull(Message, frozen=True):
    """Ask for the published changes after revision `since` of these kinds, or parts of them (() for all), at most
    `limit`.

    `held`: when there are none yet the answer waits until there are, and so does the next, from where that one ended,
    once it was taken; a later pull of the same watcher takes its place. Reply: Pulled.
    """

    watcher: str
    since: int
    kinds: tuple[str, ...] = ()
    # A bound: without one, a watcher that was away would get the whole log in one answer.
    limit: int = 1000
    held: bool = True


class ReadRevision(Message, frozen=True):
    """Ask for the revision that the api has reached. Reply: RevisionRead."""


class Pulled(Message, frozen=True):
    """Changes in the order of their `revisions`; each is a `core.messages.events.Mutation`, encoded as in the journal.

    The watcher continues from `revision`. `gone` (410): the log no longer reaches back that far, and the watcher must
    list again. `more`: the limit cut it.
    """

    revision: int
    revisions: tuple[int, ...] = ()
    events: tuple[bytes, ...] = ()
    gone: bool = False
    more: bool = False


class RevisionRead(Message, frozen=True):
    """The api's revision. `revision`: the newest that watchers may see. `bound`: pods put on a node since the process
    began.
    """

    revision: int
    bound: int = 0


# --- To the workers that carry decisions out


class BindOrder(Message, frozen=True):
    """Carry out these binds. `first_sequence` is the journal number of the first one's decision; the others follow it.

    For the metrics: `decided_at`, the cycle's `now`, and `created`, when each pod was made; empty when unknown.
    """

    cycle: int
    first_sequence: int
    binds: tuple[Bind, ...]
    decided_at: float = 0.0
    # Beside the binds: a Bind is in the journal and in the digest, and when its pod was made is in neither.
    created: tuple[float, ...] = ()


class EvictOrder(Message, frozen=True):
    """Carry out these evictions."""

    cycle: int
    first_sequence: int
    evicts: tuple[Evict, ...]


class WriteStatus(Message, frozen=True):
    """Write a cycle's conditions and statuses of pods, PodGroups and queues; an event that was written before is not
    repeated.

    `seen`: the api's revision up to which the cycle saw it; 0: unknown.
    """

    cycle: int
    pod_conditions: tuple[PodCondition, ...] = ()
    pod_groups: tuple[PodGroupStatus, ...] = ()
    queues: tuple[QueueStatus, ...] = ()
    events: tuple[PodGroupEvent, ...] = ()
    seen: int = 0


BindWorkerCommand = BindOrder
EvictWorkerCommand = EvictOrder
StatusWriterCommand = WriteStatus


# --- To the supervisor


class Restart(Message, frozen=True):
    """Replace a hung actor by a new instance on its mailbox; one that has not been started yet is left alone.

    `injected`: it is a storm's doing, no bug.
    """

    actor: str
    injected: bool = False


class MeasureProcess(Message, frozen=True):
    """Ask for the measures of a process. Reply: ProcessMeasured."""


SupervisorCommand = Restart | MeasureProcess


class MailboxStatistics(Struct, frozen=True, gc=False):
    """Counts of one mailbox; `high_water` is the largest number of envelopes that ever waited."""

    name: str
    capacity: int
    queued: int
    sent: int
    received: int
    blocked_senders: int
    high_water: int
    closed: bool


class ProcessMeasured(Message, frozen=True):
    """The measures of a process: its mailboxes by name, and the request whose step blocked the event loop longest, in
    seconds.
    """

    mailboxes: tuple[MailboxStatistics, ...] = ()
    longest_s: float = 0.0
    longest_request: str = ""


# --- To the session runner


class RunCycle(Message, frozen=True):
    """Run a cycle now, changed or not. Reply: Done after it."""


class OfferConfig(Message, frozen=True):
    """Offer a configuration's text and its place: it is taken over before the next cycle, unless it is not valid."""

    text: str
    source: str


class AwaitCycle(Message, frozen=True):
    """Wait for the cycle of this number. Reply: CyclesRun."""

    number: int = 0


class CyclesRun(Message, frozen=True):
    """The number of the newest cycle that has been carried out."""

    cycle: int


class TellQueues(Message, frozen=True):
    """Tell the metrics of the queues and cards as the newest session knew them. Reply: Done after it."""


RunnerCommand = RunCycle | OfferConfig | AwaitCycle | TellQueues


# --- To the recorder


class Entry(Struct, frozen=True, gc=False):
    """One record for the journal; `payload` is the very bytes that travelled.

    `cause` is the sequence number of the record it follows from (0: none; -k: the k-th entry of the same Append).
    """

    kind: str
    payload: bytes
    # A place and not a number, since sequence numbers are given only when the transaction is written.
    cause: int = 0


class Append(Message, frozen=True):
    """Write these records, in order, in one transaction. Reply (when asked): Appended, once they are on disk."""

    entries: tuple[Entry, ...]


class SaveCheckpoint(Message, frozen=True):
    """Keep a state that stands for all records up to `sequence`, and a record of its hash.

    Reply (when asked): Appended, of that record; (0, 0) when it could not be kept, which loses nothing but time.
    """

    sequence: int
    at: float
    content: bytes


RecorderCommand = Append | SaveCheckpoint


# --- From the mirror


class Reflect(Message, frozen=True):
    """Store an object of another cluster (MessagePack) as it is there, without checks; b"" removes it.

    Only its resourceVersion becomes the store's own. What is stored already changes nothing; an object of another uid
    takes the place of the one of that name. `sequence`: the journal number of the decision that it carries out, 0: of
    none. Reply: Accepted | Refused, for a kind that is unknown.
    """

    kind: str
    namespace: str
    name: str
    blob: bytes
    user: str = ""
    sequence: int = 0


# --- Faults of a storm


class ReadFaults(Message, frozen=True):
    """Ask for the number of faults so far, by kind. Reply: FaultsRead."""


class FaultsRead(Message, frozen=True):
    """The number of faults so far. `struck`: by kind; empty where faults are off."""

    struck: dict[str, int]


# --- To the api server


class Create(Message, frozen=True):
    """Admit and store a new object (MessagePack). `dry_run`: admission only. Reply: Accepted | Refused.

    `manager`: who is to own its fields, where ownership is kept (server-side apply). `uid`: as recorded; "": a new one.
    """

    blob: bytes
    dry_run: bool = False
    user: str = ""
    manager: str = ""
    uid: str = ""


class LoadObject(Message, frozen=True):
    """Store an object as a cluster had it (MessagePack): uid, age, status and deletion come along. Reply: Accepted |
    Refused.

    It is not judged as a new object would be: it exists. Refused is only what no reader could make sense of.
    """

    blob: bytes
    user: str = ""


class Update(Message, frozen=True):
    """Replace an object; metadata.resourceVersion, when present, must be the stored one (409 Conflict otherwise).

    `subresource` "status": only the status is taken from the object given. `until` as in `BindPod`.
    """

    blob: bytes
    user: str = ""
    subresource: str = ""
    dry_run: bool = False
    manager: str = ""
    until: float = math.inf


class UpdateStatus(Message, frozen=True):
    """Merge a patch (MessagePack of it) under `status`; 409 unless `resource_version` is None or the stored one."""

    kind: str
    namespace: str
    name: str
    blob: bytes
    resource_version: str | None = None
    user: str = ""


class Patch(Message, frozen=True):
    """Change an object by a patch (MessagePack of it). Reply: Accepted (`created` by an apply) | Refused.

    `form`: "merge" (RFC 7386), "json" (RFC 6902), "strategic" (by the merge keys of built-in kinds; 415 for others) or
    "apply" (server-side apply by `manager`, who takes over conflicting fields when `force`; creates a new object).
    `subresource` "status": only the status is touched; otherwise it is left alone where the kind has the subresource.
    """

    kind: str
    namespace: str
    name: str
    blob: bytes
    user: str = ""
    form: str = "merge"
    subresource: str = ""
    dry_run: bool = False
    manager: str = ""
    force: bool = False


EMPTIES: Final = "namespace-contents"
"""The user of those deletions of a namespace that empty it: in a served cluster others only announce it."""


class Delete(Message, frozen=True):
    """Delete, gracefully where the object has a grace period; `uid` and `resource_version` are preconditions.

    `propagation`: what becomes of its dependents: "Background" (also ""), "Foreground" or "Orphan".
    """

    kind: str
    namespace: str
    name: str
    # Names are taken again: without the uid a late request could delete the successor of the object.
    uid: str | None = None
    grace_period_s: int | None = None
    user: str = ""
    propagation: str = ""
    resource_version: str | None = None
    dry_run: bool = False


class RequestEviction(Message, frozen=True):
    """policy/v1 Eviction: delete the pod unless a PodDisruptionBudget forbids it (429). Reply: Accepted | Refused."""

    namespace: str
    name: str
    uid: str | None = None
    grace_period_s: int | None = None
    user: str = ""
    dry_run: bool = False


class BindPod(Message, frozen=True):
    """The binding subresource; `annotations` are merged into the pod's.

    `cause` is the operation id "cycle/uid", `sequence` the decision's journal number. `until`: the moment (event-loop
    time, seconds) after which the sender does not wait for it any more and it must not be carried out, as a
    kube-apiserver drops a request past its deadline; who asked may decide anew.
    """

    namespace: str
    name: str
    uid: str
    node: str
    cause: str = ""
    sequence: int = 0
    annotations: dict[str, str] = field(default_factory=dict[str, str])
    until: float = math.inf


class StatusCondition(Struct, frozen=True, gc=False):
    """Set a condition of a pod."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class EvictPod(Message, frozen=True):
    """Set conditions of a pod, then delete it in its grace period (unless none changed). `until` as in `BindPod`."""

    namespace: str
    name: str
    uid: str
    conditions: tuple[StatusCondition, ...] = ()
    cause: str = ""
    sequence: int = 0
    until: float = math.inf


class ReportStatus(Message, frozen=True):
    """Lay the scheduler's status of an object over its newest status, conditions by type; 409 Conflict, with its
    revision, when the object has changed after the revision `as_of`. `cycle` becomes the transition id of a PodGroup's
    new conditions.

    A pod that is another one, or on a node by then, stays as it is. Reply: Accepted | Refused.
    """

    kind: str
    namespace: str
    name: str
    wanted: PodCondition | PodGroupStatus | QueueStatus
    cycle: int
    as_of: int = 0


class Get(Message, frozen=True):
    """Get an object. Reply: Accepted(revision of the store, blob) | Refused 404."""

    kind: str
    namespace: str
    name: str


class List(Message, frozen=True):
    """List objects. Reply: Listing. `label_selector` is Kubernetes' text form."""

    kind: str
    namespace: str | None = None
    label_selector: str | None = None


class OpenListing(Message, frozen=True):
    """List all objects of a kind (of a namespace) as they are now, without copying them into a message.

    Reply: ListingOpened | Refused. The asker takes the blobs by their handle.
    """

    kind: str
    namespace: str | None = None


StoreRequest = (
    Create | LoadObject | Update | UpdateStatus | ReportStatus | Patch | Delete | RequestEviction | BindPod |
    EvictPod | Reflect | Get | List | OpenListing | ReadRevision
)  # fmt: skip
ApiRequest = StoreRequest | Pull | ReadFaults  # a pull may have to wait; no fault is about either

# --- To the cache (its events are in core.messages.events)


class CycleSaid(Struct, frozen=True):
    """The statuses that a cycle writes on PodGroups and queues. `alone`: the cycle did nothing else, and neither time
    nor chance moves the next.
    """

    pod_groups: tuple[PodGroupStatus, ...] = ()
    queues: tuple[QueueStatus, ...] = ()
    alone: bool = False


class TakeSnapshot(Message, frozen=True):
    """Take a snapshot for `cycle`. Reply: SnapshotTaken. `known_version`: of the asker's last snapshot; `volumes`: how
    they count.

    `said`: by the cycle before. When nothing else has come since, none is taken. None: one is taken in any case.
    `kept`: its columns may be those of an earlier session, brought up to date.
    """

    # Older than every version, so that the first answer always brings a snapshot.
    known_version: int = -1
    cycle: int = 0
    volumes: VolumeRules = USUAL
    said: CycleSaid | None = None
    kept: bool = False


class Assume(Message, frozen=True):
    """Hold the decisions of a cycle in the view until their outcomes come. Reply: Assumed."""

    cycle: int
    binds: tuple[Bind, ...] = ()
    evicts: tuple[Evict, ...] = ()


class CheckView(Message, frozen=True):
    """Check the view against its parts. Reply: ViewChecked."""


class LookLater(Message, frozen=True):
    """Schedule once more in `wait_s` seconds, changed or not, after a status could not be written."""

    wait_s: float


CacheCommand = TakeSnapshot | Assume | CheckView | LookLater | ReadBoard | ReadResidents

# --- To the action and dry-run workers


class RunAction(Message, frozen=True):
    """Run an action with the baton: only its holder may touch the session. Reply: ActionDone | ActionFailed.

    `asking`: the action may stop at questions to processes outside.
    """

    session: int
    action: str
    asking: bool = False


ActionCommand = RunAction


class Chunk(Message, frozen=True):
    """Dry-run rows first..last-1 (offset order) with the named pure function. Reply: Candidates | DryRunFailed.

    `argument` is MessagePack, the same for all chunks of a request; `want`: stop after so many findings (0: all).
    """

    request: int
    chunk: int
    function: str
    argument: bytes
    first: int
    last: int
    want: int = 0


DryRunCommand = Chunk

# --- To the metrics actor


class Expose(Message, frozen=True):
    """Ask for the metrics. Reply: Exposition."""


MetricsCommand = Expose | ReadRecent

# --- To the arrivals


class Announced(Struct, frozen=True, gc=False):
    """An object that will be created, at `at` (seconds since the epoch); `blob`: as MessagePack."""

    at: float
    blob: bytes


class Announce(Message, frozen=True):
    """Announce objects that will come. Reply: Done."""

    arrivals: tuple[Announced, ...]


# --- To actors that only watch


class Poke(Message, frozen=True):
    """Look again now. Reply: Done."""
