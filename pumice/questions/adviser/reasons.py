"""Reasons for which a job can wait: a class, and within it a reason, as words that programs can rely on."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class WaitClass(StrEnum):
    """Party that can act on a job that waits."""

    QUOTA = "Quota"
    FAIRNESS = "Fairness"
    ADMISSION = "Admission"
    FRAGMENTED = "Fragmented"
    NO_CAPACITY = "NoCapacity"
    CONSTRAINT = "Constraint"
    GANG_PARTNERS = "GangPartners"
    SCHEDULING_GATES = "SchedulingGates"
    ROOM_TO_COME = "RoomToCome"


class WaitReason(StrEnum):
    """Exact reason for waiting; each belongs to one class (`CLASS_OF`)."""

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
    def _missing_(cls, value: object) -> WaitReason | None:
        return ALIASES.get(str(value))


ALIASES: Final[dict[str, WaitReason]] = {
    "NoQueue": WaitReason.QUEUE_MISSING,
    "QueueNotFound": WaitReason.QUEUE_MISSING,
    "NotConsidered": WaitReason.NOT_LOOKED_AT,
    "NoPods": WaitReason.PODS_MISSING,
    "SchedulingGated": WaitReason.GATED,
    "Pipelined": WaitReason.PROMISED,
}
"""Words by which single commands called a reason before they had them in common."""

MEANINGS: Final[dict[WaitClass, str]] = {
    WaitClass.QUOTA: "what its queue or namespace may have at most is used up: raise it, or wait for one's own pods",
    WaitClass.FAIRNESS: "there is room, but others are entitled to it first",
    WaitClass.ADMISSION: "it is not let in yet, or nobody looks at it: no node was asked",
    WaitClass.FRAGMENTED: "enough is free in all, but not in pieces large enough",
    WaitClass.NO_CAPACITY: "not enough is free on all nodes that would do together: what an autoscaler should see",
    WaitClass.CONSTRAINT: "what it demands of nodes or neighbours is met nowhere",
    WaitClass.GANG_PARTNERS: "pods of its own gang are missing",
    WaitClass.SCHEDULING_GATES: "its pods have scheduling gates that somebody must take away",
    WaitClass.ROOM_TO_COME: "it was promised room that is being released",
}

CLASS_OF: Final[dict[WaitReason, WaitClass]] = {
    WaitReason.QUEUE_CAPABILITY: WaitClass.QUOTA,
    WaitReason.NAMESPACE_QUOTA: WaitClass.QUOTA,
    WaitReason.QUEUE_SHARE: WaitClass.FAIRNESS,
    WaitReason.BEHIND_OTHERS: WaitClass.FAIRNESS,
    WaitReason.OTHERS_FIRST: WaitClass.FAIRNESS,
    WaitReason.OVERCOMMIT: WaitClass.ADMISSION,
    WaitReason.NOT_ADMITTED: WaitClass.ADMISSION,
    WaitReason.NOT_LOOKED_AT: WaitClass.ADMISSION,
    WaitReason.NO_SCHEDULER: WaitClass.ADMISSION,
    WaitReason.NO_POD_GROUP: WaitClass.ADMISSION,
    WaitReason.POD_GROUP_MISSING: WaitClass.ADMISSION,
    WaitReason.QUEUE_MISSING: WaitClass.ADMISSION,
    WaitReason.QUEUE_NOT_OPEN: WaitClass.ADMISSION,
    WaitReason.QUEUES_UNUSABLE: WaitClass.ADMISSION,
    WaitReason.FREE_IN_PIECES: WaitClass.FRAGMENTED,
    WaitReason.IN_USE: WaitClass.NO_CAPACITY,
    WaitReason.LARGER_THAN_CLUSTER: WaitClass.NO_CAPACITY,
    WaitReason.LARGER_THAN_ANY_NODE: WaitClass.NO_CAPACITY,
    WaitReason.NO_NODE_ALLOWED: WaitClass.CONSTRAINT,
    WaitReason.NOT_TOLERATED: WaitClass.CONSTRAINT,
    WaitReason.PODS_APART: WaitClass.CONSTRAINT,
    WaitReason.PLACEMENT_REFUSED: WaitClass.CONSTRAINT,
    WaitReason.BIND_REFUSED: WaitClass.CONSTRAINT,
    WaitReason.TOPOLOGY: WaitClass.CONSTRAINT,
    WaitReason.PODS_MISSING: WaitClass.GANG_PARTNERS,
    WaitReason.NOT_VALID: WaitClass.GANG_PARTNERS,
    WaitReason.GATED: WaitClass.SCHEDULING_GATES,
    WaitReason.PROMISED: WaitClass.ROOM_TO_COME,
}
