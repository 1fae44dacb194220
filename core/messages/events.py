# SPDX-License-Identifier: Apache-2.0
"""Events. Outcomes of decisions carry the cause id ("cycle/uid") of their decision."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from msgspec import Struct, field

from pumice.core.messages.decisions import BindContext, BindingJob, FailedAnswers
from pumice.core.messages.message import Message
from pumice.core.messages.questions import OutsideAnswers
from pumice.core.objects.metadata import Object

# --- The shadow: how far another scheduler and Pumice decide alike

# Not 0, which would say that all agreed.
NOT_LOOKED = -1


class ShadowDifference(Struct, frozen=True, gc=False):
    """One difference. `what`: "bind", "evict", "phase", "condition" (of a PodGroup) or "reason" (of a pod that waits);
    `name`: "namespace/name" of the pod or PodGroup.

    `there` and `here` are the node, the phase or the words of each, "" for nothing; `why_there`: what the cluster wrote
    of it, `why_here`: what was found here.
    """

    what: str
    name: str
    there: str
    here: str
    why_there: str = ""
    why_here: str = ""


class NumberedDifference(TypedDict):
    """A `ShadowDifference`, and the cycle in which it was seen."""

    cycle: int
    what: str
    name: str
    there: str
    here: str
    why_there: str
    why_here: str


class ShadowTold(TypedDict):
    """All comparisons of a shadow together: how many of the cluster's `decisions` were the `same` here (`ties` of them
    chose one of several equally good nodes), took another node, or were made by one of the two alone; `share`: the part
    that was the same. The counts of PodGroups and waiting pods are of the newest look at what stands.
    """

    decisions: int
    same: int
    ties: int
    other_node: int
    only_there: int
    only_here: int
    share: float | None
    groups: NotRequired[int]
    other_phases: NotRequired[int]
    other_conditions: NotRequired[int]
    waiting: NotRequired[int]
    other_reasons: NotRequired[int]
    differences: list[NumberedDifference]


class ShadowCompared(Message, frozen=True):
    """One comparison, kind "shadow" of the journal; counts are of this comparison alone.

    `cycle` is the observed cycle that it is about, or the last before a look at what stands. `config`: the digest of
    the configuration that was decided by here, from `source`; `other`: it is not the cluster's own.
    Of `decisions` seen, `same` were the same here (`ties` of them one of several equally good nodes), the others were
    put on an `other_node` or not made here (`only_there`); `only_here`: made here alone, look after look. Of `groups`
    PodGroups so many have another phase or other conditions here, of `waiting` pods so many another reason; -1: not
    compared.
    """

    cycle: int
    at: float
    config: str
    source: str
    other: bool = False
    decisions: int = 0
    same: int = 0
    ties: int = 0
    other_node: int = 0
    only_there: int = 0
    only_here: int = 0
    groups: int = NOT_LOOKED
    other_phases: int = NOT_LOOKED
    other_conditions: int = NOT_LOOKED
    waiting: int = NOT_LOOKED
    other_reasons: int = NOT_LOOKED
    differences: tuple[ShadowDifference, ...] = ()


class ReadMirrored(Message, frozen=True):
    """Ask how far the mirror has read. Reply: Mirrored."""


class Mirrored(Message, frozen=True):
    """The newest cycle of the cluster's own scheduler in the journal; whether the cluster was seen as a whole since the
    start; the result of all comparisons of a shadow, as packed plain data, b"" without one.
    """

    cycle: int
    seen: bool
    shadow: bytes = b""


# --- Operations of the cache on the view
# Every cycle's record lists what was done since the one before, each with the api revision that the view had seen by
# then: showing the changes up to there and doing the same gives the same view. `core.fold.shown` says what each does.


class _Operation(Struct, frozen=True, gc=False, tag_field="operation"):
    revision: int


class BeganAnew(_Operation, frozen=True, tag="anew"):
    """The cache started with an empty view, for the first time or after a crash."""


class Relisted(_Operation, frozen=True, tag="relist"):
    """Every watched object was listed again: at first, and after the watch had fallen off the log.

    `listed`: the revision at which each kind was listed, in the order in which they were applied.
    """

    listed: dict[str, int] = field(default_factory=dict[str, int])


class AssumedCycle(_Operation, frozen=True, tag="assume"):
    """All decisions of `cycle` are in flight."""

    cycle: int = 0


class _OfPod(_Operation, frozen=True):
    """An operation on a pod. `uid`: of this pod, not of a namesake; "" in old journals: whichever has the name."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class HeldBind(_OfPod, frozen=True, tag="hold"):
    """The bind to `node` was in flight when the cache before this one crashed, and still is."""

    node: str = ""
    pre_bind: BindContext | None = None


class HeldEviction(_OfPod, frozen=True, tag="hold-eviction"):
    """The eviction was in flight when the cache before this one crashed, and still is."""


class ForgotBind(_OfPod, frozen=True, tag="forget"):
    """The bind failed: the pod is what the api says."""


class Unevicted(_OfPod, frozen=True, tag="unevict"):
    """The eviction failed: the pod is what the api says."""


ViewOperation = BeganAnew | Relisted | AssumedCycle | HeldBind | HeldEviction | ForgotBind | Unevicted


# --- Outcomes: every decision ends as one of these


class DecisionOutcome(Message, frozen=True):
    """The outcome of a bind or an eviction. `cause`: "cycle/uid" of the decision; `sequence`: its journal number."""

    cause: str
    sequence: int
    namespace: str
    name: str
    uid: str


class Bound(DecisionOutcome, frozen=True):
    """The api accepted the binding, at `revision`."""

    node: str
    revision: int = 0


class BindRefused(DecisionOutcome, frozen=True):
    """The api refused the binding."""

    node: str
    code: int = 0
    reason: str = ""
    message: str = ""


class BindTimedOut(DecisionOutcome, frozen=True):
    """No answer came in time, or the answer was lost: whether the pod is bound is unknown until it is read again."""

    node: str
    message: str = ""


class Evicted(DecisionOutcome, frozen=True):
    """The api accepted the eviction; the pod may still be terminating."""

    revision: int = 0


class EvictRefused(DecisionOutcome, frozen=True):
    """The api refused the eviction (a budget, or another pod of that name)."""

    code: int = 0
    reason: str = ""
    message: str = ""


class EvictTimedOut(DecisionOutcome, frozen=True):
    """No answer came in time: whether the pod is evicted is unknown until it is read again."""

    message: str = ""


class StatusRefused(Message, frozen=True):
    """A status could not be written, even after reading again."""

    cycle: int
    kind: str
    namespace: str
    name: str
    code: int = 0
    reason: str = ""
    message: str = ""


Outcome = Bound | BindRefused | BindTimedOut | Evicted | EvictRefused | EvictTimedOut | StatusRefused
"""A journal record of kind "outcome"."""

CacheEvent = Bound | BindRefused | BindTimedOut | Evicted | EvictRefused | EvictTimedOut
"""Events for the cache."""

# --- Measurements


class CycleMeasured(Message, frozen=True):
    """The measures of a cycle: how long its parts took (seconds) and its results (counts).

    `plugins`: by OnSessionOpen and OnSessionClose, and plugin. `binding` are the jobs that got nodes at `now`,
    `created` when their pods were made.
    """

    cycle: int
    total_s: float
    open_s: float
    close_s: float
    actions: dict[str, float] = field(default_factory=dict[str, float])
    plugins: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    attempts: dict[str, int] = field(default_factory=dict[str, int])
    victims: int = 0
    preemption_attempts: int = 0
    unscheduled: dict[str, int] = field(default_factory=dict[str, int])
    now: float = 0.0
    binding: dict[str, BindingJob] = field(default_factory=dict[str, BindingJob])
    created: tuple[float, ...] = ()


class TasksBound(Message, frozen=True):
    """Seconds to the outcome of a batch of binds: from the decision, and from the pod's creation where it is known."""

    seconds: tuple[float, ...] = ()
    since_created: tuple[float, ...] = ()


class PodsCreated(Message, frozen=True):
    """The seconds from the creation of a Volcano Job to that of each of some of its pods."""

    seconds: tuple[float, ...]


MetricsEvent = CycleMeasured | PodsCreated | ShadowCompared | TasksBound

# --- Journal records


class Mutation(Message, frozen=True):
    """A change of the api's truth, kind "api": replaying them in order rebuilds the store, and watchers read them.

    `type` is ADDED, MODIFIED or DELETED; `blob` the object after it (before it, when DELETED), as MessagePack.
    """

    revision: int
    type: str
    kind: str
    namespace: str
    name: str
    blob: bytes
    user: str = ""


class CycleRecord(Message, frozen=True):
    """One cycle, kind "cycle": its inputs (revision, the view's own operations, now, seed, config) and its results.

    `decisions` records of kind "decision" follow it in the same transaction. `statuses` is the WriteStatus it sends.
    `answers`: what processes outside said; `failed`: what users' plugins did not answer. `scheduler`: whose cycle it
    is, "" for Volcano's. `rules` is the version of the rules it was decided by (`config.rules`), `digest_version` that
    of what the digest covers (`core.digest`); a record that does not say has version 1. `observed`: decided by the
    scheduler of another cluster, as far as that was seen: it has no digest, and what it saw is known only about.
    """

    cycle: int
    now: float
    seed: int
    revision: int
    version: int
    config_digest: str
    digest: str
    decisions: int
    carry_before: Object = field(default_factory=Object)
    carry: Object = field(default_factory=Object)
    operations: tuple[ViewOperation, ...] = ()
    statuses: bytes = b""
    wake_at: float | None = None
    rules: int = 1
    digest_version: int = 1
    answers: OutsideAnswers | None = None
    scheduler: str = ""
    failed: tuple[FailedAnswers, ...] = ()
    observed: bool = False


class ConfigLoaded(Message, frozen=True):
    """The scheduler configuration from here on, kind "config"; `error`: it was refused and the old one kept.

    `plugins`: the users' plugins that it names, by name, with what tells one version of them from another.
    `default_duration_s`: how long pods run in this run that do not say (0: for ever); None: unknown.
    """

    digest: str
    text: str
    source: str
    error: str = ""
    plugins: dict[str, str] = field(default_factory=dict[str, str])
    default_duration_s: float | None = None


class CheckpointTaken(Message, frozen=True):
    """A checkpoint, kind "checkpoint": a kept state that stands for all records up to `sequence`; the BLAKE2b of its
    bytes.
    """

    sequence: int
    hash: bytes


class ActorStarted(Message, frozen=True):
    """An actor started, kind "actor"."""

    actor: str
    at: float


class ActorCrashed(Message, frozen=True):
    """An actor crashed, kind "actor". `restart_in_s` is None when it is not started again."""

    actor: str
    at: float
    error: str
    restart_in_s: float | None = None


class ActorStopped(Message, frozen=True):
    """An actor stopped, kind "actor"."""

    actor: str
    at: float


class CycleDropped(Message, frozen=True):
    """A cycle was lost with its session before anything of it was sent, kind "actor"."""

    cycle: int
    at: float
    error: str


ActorEvent = ActorStarted | ActorCrashed | ActorStopped | CycleDropped


class FaultsBegan(Message, frozen=True):
    """A profile of faults for clients is in force from here on, kind "fault": its seed, and its rules as JSON (without
    rules there are no faults any more).
    """

    seed: int
    rules: bytes = b"[]"


class FaultStruck(Message, frozen=True):
    """A fault struck a client's request, the `nth` of the same requests, kind "fault". `rule`: its name in the profile.
    Of a create without a name `name` is its generateName. A fault of a node has no client and no verb.
    """

    rule: str
    fault: str
    kind: str
    namespace: str
    name: str
    client: str = ""
    verb: str = ""
    subresource: str = ""
    user: str = ""
    nth: int = 1
    told: str = ""


FaultEvent = FaultsBegan | FaultStruck
