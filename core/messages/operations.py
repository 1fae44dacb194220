"""What the cache does to the scheduler's view by itself, beside showing it the api's changes: a closed union.

Every cycle's record lists what was done since the one before, each with the api revision that the view had seen by
then: showing the changes up to there and doing the same gives the same view. `core.fold.shown` says what each does.
"""

from __future__ import annotations

from msgspec import Struct, field

from pumice.core.messages.decisions import BindContext


class _Operation(Struct, frozen=True, gc=False, tag_field="operation"):
    revision: int


class BeganAnew(_Operation, frozen=True, tag="anew"):
    """A view without any object: the cache was started, for the first time or after a crash."""


class Relisted(_Operation, frozen=True, tag="relist"):
    """Every watched object was listed again: at first, and after the watch had fallen off the log.

    `listed`: the revision at which each kind was listed, in the order in which they were applied.
    """

    listed: dict[str, int] = field(default_factory=dict[str, int])


class AssumedCycle(_Operation, frozen=True, tag="assume"):
    """All decisions of `cycle` are on their way."""

    cycle: int = 0


class _OfPod(_Operation, frozen=True):
    """`uid`: of this pod, not of a namesake; "" in old journals: whichever has the name."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class HeldBind(_OfPod, frozen=True, tag="hold"):
    """The pod was in flight to `node` when the cache before this one crashed, and is still."""

    node: str = ""
    pre_bind: BindContext | None = None


class HeldEviction(_OfPod, frozen=True, tag="hold-eviction"):
    """The pod was being evicted when the cache before this one crashed, and is still."""


class ForgotBind(_OfPod, frozen=True, tag="forget"):
    """The bind failed: the pod is what the api says."""


class Unevicted(_OfPod, frozen=True, tag="unevict"):
    """The eviction failed: the pod is what the api says."""


ViewOperation = BeganAnew | Relisted | AssumedCycle | HeldBind | HeldEviction | ForgotBind | Unevicted
