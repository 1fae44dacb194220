# SPDX-License-Identifier: Apache-2.0
"""The reason for which a job waits: one typed value, made by `wait_reasons`, with the same text in all commands.

Its class and code are words that programs can rely on; each code belongs to one class (`CODES`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from pumice.core.messages.queue_tables import reckoned, told
from pumice.units import amount, figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# --- Words


class WaitClass(StrEnum):
    """Party that can act on a waiting job."""

    QUOTA = "Quota"
    FAIRNESS = "Fairness"
    ADMISSION = "Admission"
    FRAGMENTED = "Fragmented"
    NO_CAPACITY = "NoCapacity"
    CONSTRAINT = "Constraint"
    GANG_PARTNERS = "GangPartners"
    SCHEDULING_GATES = "SchedulingGates"
    ROOM_TO_COME = "RoomToCome"


class WaitCode(StrEnum):
    """Exact reason for waiting; each belongs to one class."""

    QUEUE_CAPABILITY = "QueueCapability"
    NAMESPACE_QUOTA = "NamespaceQuota"
    QUEUE_SHARE = "QueueShare"
    BEHIND_OTHERS = "BehindOthers"
    OTHERS_FIRST = "OthersFirst"
    OVERCOMMIT = "Overcommit"
    NOT_ADMITTED = "NotAdmitted"
    NOT_LOOKED_AT = "NotLookedAt"
    NO_SCHEDULER = "NoScheduler"
    NO_POD_GROUP = "NoPodGroup"
    POD_GROUP_MISSING = "PodGroupNotFound"
    QUEUE_MISSING = "QueueMissing"
    QUEUE_NOT_OPEN = "QueueNotOpen"
    QUEUES_UNUSABLE = "QueuesUnusable"
    FREE_IN_PIECES = "FreeInPieces"
    IN_USE = "InUse"
    LARGER_THAN_CLUSTER = "LargerThanCluster"
    LARGER_THAN_ANY_NODE = "LargerThanAnyNode"
    NO_NODE_ALLOWED = "NoNodeAllowed"
    NOT_TOLERATED = "NotTolerated"
    PODS_APART = "PodsApart"
    PLACEMENT_REFUSED = "PlacementRefused"
    BIND_REFUSED = "BindRefused"
    TOPOLOGY = "Topology"
    PODS_MISSING = "PodsMissing"
    NOT_VALID = "NotValid"
    GATED = "Gated"
    PROMISED = "Promised"

    @classmethod
    def _missing_(cls, value: object) -> WaitCode | None:
        return ALIASES.get(str(value))


ALIASES: Final[dict[str, WaitCode]] = {
    "NoQueue": WaitCode.QUEUE_MISSING,
    "QueueNotFound": WaitCode.QUEUE_MISSING,
    "NotConsidered": WaitCode.NOT_LOOKED_AT,
    "NoPods": WaitCode.PODS_MISSING,
    "SchedulingGated": WaitCode.GATED,
    "Pipelined": WaitCode.PROMISED,
}
"""Words by which single commands called a code before they had them in common; kept for one version."""

MEANINGS: Final[dict[WaitClass, str]] = {
    WaitClass.QUOTA: "what its queue or namespace may have at most is used up: raise it, or wait for one's own pods",
    WaitClass.FAIRNESS: "there is room, but others are entitled to it first",
    WaitClass.ADMISSION: "it is not admitted yet, or no cycle looks at it: no node was asked",
    WaitClass.FRAGMENTED: "enough is free in all, but not in pieces large enough",
    WaitClass.NO_CAPACITY: "not enough is free on all nodes that would do together: what an autoscaler should see",
    WaitClass.CONSTRAINT: "what it demands of nodes or neighbours is met nowhere",
    WaitClass.GANG_PARTNERS: "pods of its own gang are missing",
    WaitClass.SCHEDULING_GATES: "its pods have scheduling gates, which a user or controller must remove",
    WaitClass.ROOM_TO_COME: "it was promised room that is being released",
}


class CodeRow(NamedTuple):
    """One code: its class, when it is given, and its remedy. In `helps`, `{subject}` stands for the subject of a
    reason, `{more}` for the missing amounts and `{others}` for the obstacles.
    """

    wait_class: WaitClass
    when: str
    helps: str


CODES: Final[dict[WaitCode, CodeRow]] = {
    WaitCode.QUEUE_CAPABILITY: CodeRow(
        WaitClass.QUOTA,
        "the job would take its queue, or one above it, beyond the most it may have (capability, or what others' "
        "guarantees leave)",
        "raise what {subject} may have by {more} (its capability, or less that is guaranteed to other queues), or wait "
        "until jobs in it end",
    ),
    WaitCode.NAMESPACE_QUOTA: CodeRow(
        WaitClass.QUOTA,
        "plugin resourcequota does not admit it",
        "raise {subject} by {more}, or wait until pods of its namespace end",
    ),
    WaitCode.QUEUE_SHARE: CodeRow(
        WaitClass.FAIRNESS,
        "its queue has what it deserves, and that is less than the cluster",
        "raise the weight or the deserved amount of {subject}, or wait until jobs in it end",
    ),
    WaitCode.BEHIND_OTHERS: CodeRow(
        WaitClass.FAIRNESS,
        "its queue does not let jobs overtake, and another job comes first",
        "let {others} start, delete it, or set dequeueStrategy of {subject} to traverse",
    ),
    WaitCode.OTHERS_FIRST: CodeRow(
        WaitClass.FAIRNESS,
        "there was room for it when the cycle opened; jobs before it took it",
        "wait until {others} end, add nodes, or raise its priority",
    ),
    WaitCode.OVERCOMMIT: CodeRow(
        WaitClass.ADMISSION,
        "plugin overcommit does not admit it",
        "free {more}, add nodes, or raise overcommit-factor of plugin overcommit",
    ),
    WaitCode.NOT_ADMITTED: CodeRow(
        WaitClass.ADMISSION, "another plugin does not admit it", "meet what {subject} asks for, or disable it"
    ),
    WaitCode.NOT_LOOKED_AT: CodeRow(
        WaitClass.ADMISSION,
        "no action of the configuration admits or places it",
        "add the actions enqueue and allocate (backfill for pods without requests) to the configuration",
    ),
    WaitCode.NO_SCHEDULER: CodeRow(
        WaitClass.ADMISSION,
        "its pods ask for a scheduler that does not run here",
        "set schedulerName of its pods to volcano, or run {subject}",
    ),
    WaitCode.NO_POD_GROUP: CodeRow(
        WaitClass.ADMISSION,
        "a pod names no PodGroup, and none was made for it; the message has the api's refusal",
        "remove what the api refused, or create a PodGroup and name it in the pod",
    ),
    WaitCode.POD_GROUP_MISSING: CodeRow(
        WaitClass.ADMISSION,
        "a pod names a PodGroup that does not exist; the message names one of that name in another namespace",
        "create {subject}, or correct the name in the pod",
    ),
    WaitCode.QUEUE_MISSING: CodeRow(
        WaitClass.ADMISSION, "its queue does not exist", "create {subject}, or name a queue that exists"
    ),
    WaitCode.QUEUE_NOT_OPEN: CodeRow(
        WaitClass.ADMISSION, "its queue is closed, closing or in no state yet", "open {subject}, or name an open queue"
    ),
    WaitCode.QUEUES_UNUSABLE: CodeRow(
        WaitClass.ADMISSION,
        "plugin capacity refuses every job: some PodGroup is in a queue that has children, or a parent or queue root "
        "does not exist; the message says which, and what to do",
        "correct the tree of queues as the sentence says",
    ),
    WaitCode.FREE_IN_PIECES: CodeRow(
        WaitClass.FRAGMENTED,
        "as much as it needs is free in all, but not in pieces large enough (of nodes, or of devices within nodes)",
        "move pods so that more is free on one node, add a node, or ask for smaller pods",
    ),
    WaitCode.IN_USE: CodeRow(
        WaitClass.NO_CAPACITY,
        "too little is free in all; other pods hold it",
        "free {more}, or add nodes with as much",
    ),
    WaitCode.LARGER_THAN_CLUSTER: CodeRow(
        WaitClass.NO_CAPACITY,
        "all nodes that would do, empty, have too little together; or a plugin does not admit it, and no queue limits "
        "it to less",
        "add nodes with {more}, or ask for less",
    ),
    WaitCode.LARGER_THAN_ANY_NODE: CodeRow(
        WaitClass.NO_CAPACITY,
        "a pod of it is larger than any node that would do, empty, or than the devices there",
        "add a node that large, or ask for less in each pod",
    ),
    WaitCode.NO_NODE_ALLOWED: CodeRow(
        WaitClass.CONSTRAINT,
        "every node is refused for what it is: labels, taints, cordons, volumes",
        "change the nodes or the pods so that a node may be used, as the sentence says",
    ),
    WaitCode.NOT_TOLERATED: CodeRow(
        WaitClass.CONSTRAINT,
        "nodes have room whose taints it does not tolerate, and against which nothing else speaks; the others are full",
        "add tolerations for {others}, or free other nodes",
    ),
    WaitCode.PODS_APART: CodeRow(
        WaitClass.CONSTRAINT,
        "there is room by amounts, but not where other pods, its own pods or plugins let it go",
        "add nodes, or ask for less affinity or spread of its pods",
    ),
    WaitCode.PLACEMENT_REFUSED: CodeRow(
        WaitClass.CONSTRAINT,
        "a node would do, but a plugin does not let it be placed there: a lock of the node stands (which, since when "
        "and for which pod: see the message), or an extender refuses",
        "remove what the plugin refuses on {subject}, or wait until it ends",
    ),
    WaitCode.BIND_REFUSED: CodeRow(
        WaitClass.CONSTRAINT,
        "its pods have nodes, and the api (or what a bind needs first, such as volumes) refused to bind them; they are "
        "tried again. How often in a row is counted in a journal",
        "remove what the bind was refused for: it is tried again",
    ),
    WaitCode.TOPOLOGY: CodeRow(
        WaitClass.CONSTRAINT,
        "there is room, but not within one domain of the topology it asks for; or the tree of HyperNodes cannot be "
        "used",
        "free room within one HyperNode, or allow a higher tier",
    ),
    WaitCode.PODS_MISSING: CodeRow(
        WaitClass.GANG_PARTNERS,
        "fewer pods of it exist than its minimum",
        "create its other pods, or lower its minimum",
    ),
    WaitCode.NOT_VALID: CodeRow(
        WaitClass.GANG_PARTNERS, "a plugin finds the job not valid otherwise", "correct the job as the sentence says"
    ),
    WaitCode.GATED: CodeRow(
        WaitClass.SCHEDULING_GATES,
        "its pods have scheduling gates, and those without are too few",
        "remove the scheduling gates {others}",
    ),
    WaitCode.PROMISED: CodeRow(
        WaitClass.ROOM_TO_COME, "it is promised room that is being released", "wait until {others} are gone"
    ),
}

WaitClass.__doc__ = f"{WaitClass.__doc__} " + " ".join(f"{each}: {meaning}." for each, meaning in MEANINGS.items())
WaitCode.__doc__ = f"{WaitCode.__doc__} " + " ".join(f"{each}: {row.when}." for each, row in CODES.items())
WaitCode.__doc__ += " Old words: " + ", ".join(f"{old} (now {code})" for old, code in ALIASES.items()) + "."

# --- The reason


class WaitNumber(msgspec.Struct, frozen=True):
    """Amounts of one resource (cpu in cores, memory in bytes, all others in pieces) in a reason.

    `limit`: whose amount `allowed` is: "queue q1", "quota q of the namespace", "nodes that would do". `asked` is what
    is asked for, `held` what is taken of `allowed` already, and `left` the rest.
    """

    resource: str
    asked: float
    held: float
    allowed: float
    left: float
    limit: str

    @classmethod
    def of(cls, resource: str, asked: float, left: float, allowed: float, limit: str) -> WaitNumber:
        """Return it from amounts as the scheduler counts them."""
        amounts = (asked, allowed - left, allowed, left)
        one, held, most, rest = (float(f"{told(resource, value):.12g}") for value in amounts)
        return cls(resource, one, held, most, rest, limit)

    @property
    def lacking(self) -> float:
        """Return how much more there must be."""
        return self.asked - max(self.left, 0.0)

    def words(self, value: float, *, bare: bool = False) -> str:
        """Return one of the amounts in the units that people write; `bare`: without the name of the resource."""
        return (figure if bare else amount)(self.resource, reckoned(self.resource, value))

    @property
    def sentence(self) -> str:
        """Return "asks 4 cpu, has 8 of 10, 2 left"."""
        held, allowed, left = (self.words(value, bare=True) for value in (self.held, self.allowed, self.left))
        return f"asks {self.words(self.asked)}, has {held} of {allowed}, {left} left"


def said(numbers: Iterable[WaitNumber]) -> str:
    """Return the sentences of several numbers; "" without numbers."""
    return "; ".join(each.sentence for each in numbers)


class WaitReason(msgspec.Struct, frozen=True, kw_only=True):
    """The reason for which a job or pod waits, the same in all commands.

    `class` and `code` are stable words. `subject`: what the reason is about, as "queue q1" or "scheduler other"; ""
    for the job itself. `numbers`: the amounts that fall short. `in_the_way`: who or what stands in the way: the jobs
    that hold most of what is lacking, the job that comes first, taints, gates or pods that leave. `helps`: what would
    help; `sentence`: the reason for people.
    """

    wait_class: WaitClass = msgspec.field(name="class")
    code: WaitCode
    subject: str = ""
    numbers: tuple[WaitNumber, ...] = ()
    in_the_way: tuple[str, ...] = ()
    helps: str
    sentence: str

    def before(self, more: str) -> str:
        """Return the sentence and what else is said, unless it says the same."""
        return more if self.sentence in more else "; ".join(filter(None, (self.sentence, more)))

    @property
    def label(self) -> str:
        """Return the code, and the resources that are lacking, which is alike for all jobs that wait for the same."""
        names = ", ".join(dict.fromkeys(each.resource for each in self.numbers))
        return f"{self.code} ({names})" if names else str(self.code)


def waits_for(
    code: WaitCode,
    sentence: str,
    subject: str = "",
    numbers: Sequence[WaitNumber] = (),
    in_the_way: Sequence[str] = (),
) -> WaitReason:
    """Return the reason of that code."""
    row = CODES[code]
    lacking = ", ".join(each.words(each.lacking) for each in numbers)
    helps = row.helps.format(
        subject=subject or "it", more=lacking or "what is lacking", others=", ".join(in_the_way) or "others"
    )
    return WaitReason(
        wait_class=row.wait_class,
        code=code,
        subject=subject,
        numbers=tuple(numbers),
        in_the_way=tuple(in_the_way),
        helps=helps,
        sentence=sentence,
    )
