"""What is written to claims before a bind, and how it is taken back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pumice.cluster.kernel.pre_bind import (
    Place,
    PreBindError,
    awaited_places,
    claim_place,
    free_volume,
    is_ready,
    promise_volume,
    writes_of,
)
from pumice.core.devices.locks import EXPIRES_S, lock_is_held
from pumice.core.kube.volume_writes import bound_claim, in_phase, with_node
from pumice.core.messages.decisions import Bind, BindContext, ClaimedDevices
from pumice.core.objects.metadata import format_time, parse_time
from tests.kit.pods import pod
from tests.kit.storage import claim as volume_claim
from tests.kit.storage import volume

NOON, LATER = "2026-01-01T12:00:00Z", "2026-01-01T12:05:01Z"
POD = ("Pod", "default", "p")
GPU = ("gpus", "driver.example.com", "n0", "gpu-0")


def claim(*users: str, allocated: bool = True) -> dict[str, Any]:
    results = [dict(zip(("request", "driver", "pool", "device"), GPU, strict=True))]
    allocation = {"allocation": {"devices": {"results": results}}} if allocated else {}
    reserved = {"reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in users]} if users else {}
    return {"metadata": {"namespace": "default", "name": "c"}, "status": {**allocation, **reserved}}


def reserved(obj: dict[str, Any], uid: str, *devices: tuple[str, str, str, str]) -> dict[str, Any] | None:
    """The claim as it is written before pod `uid` is bound, whose bind gives it these devices."""
    needs = BindContext(devices=(ClaimedDevices("default/c", devices),))
    (write,) = writes_of(Bind("default", uid, uid, "n0", "default/j", needs))
    return write.do(obj, {})


def test_a_pod_that_shares_the_devices_of_a_claim_is_noted_beside_the_others() -> None:
    """Whoever is not would not be started on its node."""
    assert reserved(claim("p"), "q") == claim("p", "q")
    assert reserved(claim(), "q") == claim("q")
    assert reserved(claim("p", "q"), "q") is None
    with pytest.raises(PreBindError, match="has lost its devices"):
        reserved(claim("q", allocated=False), "q")


def test_a_claim_that_was_given_other_devices_meanwhile_is_not_the_pods() -> None:
    """It was given those that the pod is to have where a bind before this one could not take them back."""
    assert reserved(claim(allocated=False), "p", GPU) == reserved(claim(), "p", GPU) == claim("p")
    with pytest.raises(PreBindError, match='"default/c" was given other devices'):
        reserved(claim(), "p", (*GPU[:3], "gpu-1"))


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


def lock(said: str | None, moment: str) -> dict[str, Any] | None:
    """The node's annotations once it is locked; None: it is so already."""
    node = {"metadata": {"name": "n0", "annotations": {"a": "b"} | ({} if said is None else {"gpu": said})}}
    (write,) = writes_of(Bind("default", "p", "p", "n0", "default/j", BindContext(locks=(("gpu", moment),))))
    assert write.place == ("Node", "", "n0")
    assert write.undo(node, {}) is None  # as in Volcano, it stays until it counts no longer
    after = write.do(node, {})
    return None if after is None else after["metadata"]["annotations"]


def test_a_node_is_locked_unless_somebody_else_has_it() -> None:
    assert lock(None, NOON) == {"a": "b", "gpu": NOON}
    assert lock(NOON, LATER) == {"a": "b", "gpu": LATER}
    assert lock(NOON, NOON) is None
    for said, words in (("2026-01-01T12:00:02Z", "locked by gpu since"), ("x", "'x' is not a valid time")):
        with pytest.raises(PreBindError, match=words):
            lock(said, LATER)


@given(st.floats(EXPIRES_S, EXPIRES_S + 3.0, exclude_min=True))
def test_a_lock_is_set_where_a_session_found_none_that_counts(age_s: float) -> None:
    """The moment that is written is the session's in whole seconds, in which another lock counted still."""
    now = parse_time(NOON) + age_s
    assume(not lock_is_held(NOON, now))
    assert lock(NOON, format_time(now)) == {"a": "b", "gpu": format_time(now)}


NAMES = st.sampled_from("abc")
ANNOTATIONS = st.dictionaries(st.sampled_from("xyz"), NAMES, max_size=2)


@st.composite
def volumes(draw: st.DrawFn) -> dict[str, Any]:
    made = volume(draw(NAMES), cls=draw(NAMES))
    made["metadata"]["annotations"] = draw(ANNOTATIONS)
    return made


@given(volumes(), NAMES)
def test_a_volume_that_was_promised_is_free_again_as_if_nothing_had_been(free: dict[str, Any], name: str) -> None:
    wanted = volume_claim(name)
    promised = promise_volume(free, wanted)
    assert promised is not None
    assert promise_volume(promised, wanted) is None
    assert free_volume(promised, wanted) == free


@given(volumes(), NAMES)
def test_a_volume_stays_with_a_claim_that_has_it_or_shall_have_it(free: dict[str, Any], name: str) -> None:
    """Bound to it by now; bound from the claim's side; promised by a person; promised to another."""
    wanted = volume_claim(name)
    promised = promise_volume(free, wanted)
    assert promised is not None
    assert free_volume(in_phase(promised, "Bound"), wanted) is None
    assert free_volume(promised, volume_claim(name, volumeName=free["metadata"]["name"])) is None
    assert free_volume({**promised, "metadata": free["metadata"]}, wanted) is None
    assert free_volume(promised, volume_claim("other")) is None


@given(volumes(), NAMES)
def test_a_volume_that_another_has_is_not_promised_over_its_head(free: dict[str, Any], name: str) -> None:
    taken = promise_volume(free, volume_claim("other"))
    assert taken is not None
    with pytest.raises(PreBindError, match='was taken by claim "default/other"'):
        promise_volume(taken, volume_claim(name))
    with pytest.raises(PreBindError, match='was bound to volume "elsewhere"'):
        promise_volume(free, volume_claim(name, volumeName="elsewhere"))


def test_a_bind_that_needs_nothing_waits_for_its_pod_alone() -> None:
    plain = Bind("default", "p", "p", "n0", "default/j")
    assert awaited_places(plain) == [POD]
    assert is_ready(plain, {POD: pod("p", uid="p")})


@pytest.mark.parametrize(
    ("found", "why"),
    [(pod("p", uid="later"), "pod default/p is another one by now"), (None, "Pod default/p is gone")],
)
def test_a_bind_whose_pod_is_not_there_any_more_never_will_be(found: dict[str, Any] | None, why: str) -> None:
    with pytest.raises(PreBindError, match=why):
        is_ready(Bind("default", "p", "p", "n0", "default/j"), {POD: found})


def sent_to_its_node(asked: dict[str, Any]) -> dict[str, Any] | None:
    """The claim once its volume is to be made on node n0; None: there is nothing to say."""
    needs = BindContext(provisions=("default/c",))
    (write,) = writes_of(Bind("default", "p", "p", "n0", "default/j", needs))
    return write.do(asked, {})


def test_a_claim_gets_its_volume_on_the_node_of_its_pod_unless_it_has_one_or_gets_one_elsewhere() -> None:
    asked = volume_claim("c")
    here, elsewhere = with_node(asked, "n0"), with_node(asked, "n1")
    assert sent_to_its_node(asked) == here
    assert sent_to_its_node(here) is None
    with pytest.raises(PreBindError, match='claim "c" gets its volume on node "n1"'):
        sent_to_its_node(elsewhere)
    for has_one in (asked, here, elsewhere):
        named = {**has_one, "spec": {**has_one["spec"], "volumeName": "pv"}}
        assert sent_to_its_node(bound_claim(named, volume("pv"))) is None


def test_a_claim_that_was_bound_to_another_volume_is_not_waited_for() -> None:
    """That volume may be on another node."""
    promised = Bind("default", "p", "p", "n0", "default/j", BindContext(volumes=(("pv", "default/c"),)))
    there: dict[Place, dict[str, Any] | None] = {POD: pod("p", uid="p")}
    for name in ("pv", "other"):
        there[claim_place("default/c")] = bound_claim(volume_claim("c"), volume(name))
        if name == "pv":
            assert is_ready(promised, there)
        else:
            with pytest.raises(PreBindError, match='claim "c" was bound to volume "other"'):
                is_ready(promised, there)


@pytest.mark.parametrize("chosen", [None, "n1", "n0"])
def test_a_claim_whose_node_was_taken_from_it_gets_no_volume_there(chosen: str | None) -> None:
    """Who is to make volumes says so when none can be made on that node."""
    made = Bind("default", "p", "p", "n0", "default/j", BindContext(provisions=("default/c",)))
    asked = with_node(volume_claim("c"), chosen)
    found: dict[Place, dict[str, Any] | None] = {POD: pod("p", uid="p"), claim_place("default/c"): asked}
    if chosen == "n0":
        assert not is_ready(made, found), "it is being made"
    else:
        with pytest.raises(PreBindError, match='no volume could be made for claim "c" on node "n0"'):
            is_ready(made, found)
