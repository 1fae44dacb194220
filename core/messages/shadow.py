"""How far another cluster's scheduler and Pumice decide alike, as it is told while both look at the same."""

from __future__ import annotations

from msgspec import Struct

from pumice.core.messages.message import Message

NOT_LOOKED = -1


class ShadowDifference(Struct, frozen=True, gc=False):
    """`what`: "bind", "evict", "phase", "condition" (of a PodGroup) or "reason" (of a pod that waits); `name`:
    "namespace/name" of the pod or PodGroup.

    `there` and `here` are the node, the phase or the words of each, "" for nothing; `why_there`: what the cluster wrote
    of it, `why_here`: what was found here.
    """

    what: str
    name: str
    there: str
    here: str
    why_there: str = ""
    why_here: str = ""


class ShadowCompared(Message, frozen=True):
    """One comparison, kind "shadow" of the journal; counts are of this comparison alone.

    `cycle` is the observed cycle that it is about, or the last before a look at what stands. `config`: the digest of
    the configuration that was decided by here, from `source`; `other`: it is not the cluster's own.
    Of `decisions` seen, `same` were the same here (`ties` of them one of several equally good nodes), the others were
    put on an `other_node` or not made here (`only_there`); `only_here`: made here alone, look after look. Of `groups`
    PodGroups so many have another phase or other conditions here, of `waiting` pods so many another reason; -1: nobody
    looked.
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
    """How far is the mirror? Reply: Mirrored."""


class Mirrored(Message, frozen=True):
    """The newest cycle of the cluster's own scheduler that is in the journal; whether the cluster was seen as a whole
    since the start; what all comparisons of a shadow came to, as packed plain data: b"" where there is none.
    """

    cycle: int
    seen: bool
    shadow: bytes = b""
