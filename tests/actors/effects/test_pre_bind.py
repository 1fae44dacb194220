"""What is written to claims before a bind, and how it is taken back."""

from __future__ import annotations

from typing import Any

from actors.effects.pre_bind import writes_of
from core.messages.decisions import Bind, BindContext, ClaimedDevices

GPU = ("gpus", "driver.example.com", "n0", "gpu-0")


def claim(*users: str, allocated: bool = True) -> dict[str, Any]:
    results = [dict(zip(("request", "driver", "pool", "device"), GPU, strict=True))]
    allocation = {"allocation": {"devices": {"results": results}}} if allocated else {}
    reserved = {"reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in users]} if users else {}
    return {"metadata": {"namespace": "default", "name": "c"}, "status": {**allocation, **reserved}}


def left(obj: dict[str, Any], *devices: tuple[str, str, str, str]) -> dict[str, Any] | None:
    """The claim after the bind of pod `p`, which was to give it `devices`, was taken back."""
    needs = BindContext(devices=(ClaimedDevices("default/c", devices),))
    (write,) = writes_of(Bind("default", "p", "p", "n0", "default/j", needs))
    return write.undo(obj, {})


def test_the_last_pod_to_leave_a_claim_gives_its_devices_back_whoever_got_them() -> None:
    """The pod's own bind before this one got them, and could not take them back: this one found them there."""
    for devices in ((), (GPU,)):
        assert left(claim("p"), *devices) == claim(allocated=False)


def test_devices_stay_with_those_who_are_left() -> None:
    for devices in ((), (GPU,)):
        assert left(claim("p", "q"), *devices) == claim("q")


def test_a_claim_that_was_not_reserved_is_left_alone() -> None:
    for devices in ((), (GPU,)):
        assert left(claim("q"), *devices) is None
