"""What the cache's operations do to a view: the same for everybody who folds them, and nothing else is one."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from pumice.config.errors import RequestError
from pumice.core.fold.past import Flights
from pumice.core.fold.shown import Shown
from pumice.core.life.task import TaskStatus
from pumice.core.messages.decisions import Bind, BindContext, Evict
from pumice.core.messages.events import (
    AssumedCycle,
    BeganAnew,
    CycleRecord,
    ForgotBind,
    HeldBind,
    HeldEviction,
    Relisted,
    Unevicted,
    ViewOperation,
)
from pumice.core.state.view import View
from pumice.storage import codec
from pumice.storage.errors import CodecError
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.pods import pod

CARRIED = BindContext(provisions=("default/c",))
BIND = Bind("default", "a", "a1", "n0", "default/g", CARRIED)
EVICT = Evict("default", "b", "b1", "n0", "default/g", "room")
OBJECTS = [node("n0"), *gang("g", pods=0), pod("a", group="g", uid="a1"), pod("b", group="g", node="n0", uid="b1")]


def shown() -> Shown[View]:
    found = Shown(View)
    assert found.operate(Relisted(1), listed=[("MODIFIED", obj) for obj in OBJECTS]) == []
    return found


def status(view: View, name: str) -> TaskStatus:
    task = view.tasks.by_key[f"default/{name}"]
    return TaskStatus(int(view.snapshot().tasks.status[task.row]))


def test_a_listing_shows_everything() -> None:
    view = shown().view
    assert (status(view, "a"), status(view, "b")) == (TaskStatus.PENDING, TaskStatus.RUNNING)


@pytest.mark.parametrize(
    ("operation", "decided"),
    [
        (AssumedCycle(1, 7), (BIND, EVICT)),
        (HeldBind(1, "default", "a", "a1", "n0", CARRIED), ()),
        (HeldEviction(1, "default", "b", "b1"), ()),
    ],
)
def test_what_is_on_its_way_is_held_and_taken_back(operation: ViewOperation, decided: Any) -> None:
    each, flights = shown(), Shown(Flights)
    for fold in (each, flights):
        assert fold.operate(operation, decided) == []
    pods = {("default", name) for name in "ab" if each.view.in_flight("default", name)}
    assert pods == {*flights.view.binds, *flights.view.evictions}
    assert pods
    assert flights.view.promised == ({("default", "a"): CARRIED} if ("default", "a") in pods else {})
    backs: list[ViewOperation] = [ForgotBind(1, "default", "a", "a1"), Unevicted(1, "default", "b", "b1")]
    for fold in (each, flights):
        for back in backs:
            fold.operate(back)
    assert not any(each.view.in_flight("default", name) for name in "ab")
    assert (flights.view.binds, flights.view.evictions, flights.view.promised) == ({}, {}, {})
    assert each.view.check() == []


def test_it_says_of_whom_there_was_nothing() -> None:
    fold = shown()
    namesake = Bind("default", "a", "other", "n0", "default/g")
    assert fold.operate(AssumedCycle(1, 7), (namesake, EVICT)) == ["other"]
    assert fold.operate(HeldBind(1, "default", "gone", "g1", "n0")) == ["g1"]
    for back in (ForgotBind(1, "default", "a", "a1"), Unevicted(1, "default", "b", "other")):
        assert fold.operate(back) == [back.uid]
        assert Shown(Flights).operate(back) == [back.uid]


def test_old_journals_take_back_by_name_alone() -> None:
    fold = shown()
    fold.operate(AssumedCycle(1, 7), (BIND, EVICT))
    assert fold.operate(ForgotBind(1, "default", "a")) == []
    assert fold.operate(Unevicted(1, "default", "b")) == []


def test_a_new_view_holds_nothing() -> None:
    fold, flights = shown(), Shown(Flights)
    for each in (fold, flights):
        each.operate(AssumedCycle(1, 7), (BIND, EVICT))
        each.operate(BeganAnew(2))
    assert not fold.view.tasks.by_key
    assert not flights.view.binds


def test_an_object_nobody_can_read_is_left_out_and_said() -> None:
    said: list[str] = []

    def note(obj: dict[str, Any], problem: RequestError) -> None:
        said.append(f"{obj['metadata']['name']}: {problem}")

    broken = pod("c", group="g")
    broken["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "nonsense"
    fold = Shown(View, note)
    fold.operate(Relisted(1), listed=[("MODIFIED", broken), *(("MODIFIED", obj) for obj in OBJECTS)])
    assert set(fold.view.tasks.by_key) == {"default/a", "default/b"}
    assert len(said) == 1
    assert said[0].startswith("c: ")


def record(operation: dict[str, Any]) -> bytes:
    plain = {"_": "CycleRecord", "cycle": 1, "now": 1.0, "seed": 0, "revision": 1, "version": 1, "decisions": 0}
    return codec.pack({**plain, "config_digest": "", "digest": "", "operations": [operation]})


@pytest.mark.parametrize("kind", get_args(ViewOperation))
def test_operations_are_read_as_the_first_version_wrote_them(kind: type[ViewOperation]) -> None:
    """With all fields of all of them."""
    unused: dict[str, Any] = {
        "cycle": 0,
        "namespace": "",
        "name": "",
        "listed": {},
        "uid": "",
        "node": "",
        "pre_bind": None,
    }
    read = codec.decode(record({"revision": 3, "operation": kind.__struct_config__.tag, **unused}), CycleRecord)
    assert read.operations == (kind(3),)


def test_anything_else_is_none() -> None:
    with pytest.raises(CodecError, match="operations"):
        codec.decode(record({"revision": 3, "operation": "frobnicate"}), CycleRecord)
