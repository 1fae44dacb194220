"""Zeros and absent fields mean the same to Go where its field is no pointer."""

from typing import Any

import pytest

from pumice.cluster.api.schema.zeros import in_form_of
from pumice.core.objects.metadata import Object


def shaped(old: Object, new: Object, kind: str = "Pod") -> Object:
    return in_form_of(old, new, "", "v1", kind)


@pytest.mark.parametrize(
    ("container", "other"),
    [
        ({"env": [{"name": "A", "value": ""}]}, {"env": [{"name": "A"}]}),
        ({"ports": [{"containerPort": 80, "hostPort": 0}]}, {"ports": [{"containerPort": 80}]}),
        ({"args": []}, {}),
        ({"resources": {}}, {}),
        ({"resources": {"limits": {}}}, {}),
        ({"stdin": False}, {}),
        (
            {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}}]},
            {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]},
        ),
    ],
)
def test_a_zero_stays_absent_or_present_as_it_was(container: Object, other: Object) -> None:
    one, two = ({"spec": {"containers": [{"name": "c", **each}]}} for each in (container, other))
    assert shaped(one, two) == one
    assert shaped(two, one) == two


MEANINGFUL: list[Object] = [
    {"priority": 0},  # a pointer: 0 is a priority
    {"securityContext": {}},
    {"volumes": [{"name": "v", "emptyDir": {}}]},
    {"nodeSelector": {"a": ""}},
    {"hostname": "h"},
    {"odd": ""},
]


@pytest.mark.parametrize("spec", MEANINGFUL)
def test_what_means_something_is_a_change(spec: Object) -> None:
    without: Object = {"spec": {"volumes": [{"name": "v"}]} if "volumes" in spec else {}}
    assert shaped({"spec": spec}, without) == without
    assert shaped(without, {"spec": spec}) == {"spec": spec}


def test_items_are_compared_by_place_and_keep_their_values() -> None:
    old: Object = {"spec": {"containers": [{"name": "a", "stdin": False}, {"name": "b"}]}}
    new: Object = {"spec": {"containers": [{"name": "b"}, {"name": "a", "tty": False}, {"name": "c", "tty": False}]}}
    expected = [{"name": "b", "stdin": False}, {"name": "a"}, {"name": "c", "tty": False}]
    assert shaped(old, new) == {"spec": {"containers": expected}}


def test_nothing_of_the_old_object_is_shared() -> None:
    old: dict[str, Any] = {"spec": {"containers": [{"name": "c", "resources": {"limits": {}}}]}}
    made: dict[str, Any] = shaped(old, {"spec": {"containers": [{"name": "c"}]}})
    made["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "1"
    assert old == {"spec": {"containers": [{"name": "c", "resources": {"limits": {}}}]}}


def test_objects_of_unknown_kinds_stay_as_they_are() -> None:
    assert shaped({"a": ""}, {"b": ""}, "Odd") == {"b": ""}
