"""What an apply of thousands of fields costs: counted in calls, which no busy machine changes."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from pumice.cluster.api.apply import Applicant, apply
from pumice.cluster.api.schema import shape_of_kind
from pumice.core.messages.replies import Refused

T0 = "2026-01-01T00:00:00Z"
MAP = shape_of_kind("", "v1", "ConfigMap")
POD = shape_of_kind("", "v1", "Pod")


def calls_of(work: Callable[[], Any]) -> tuple[int, Any]:
    """How many calls, of Python's functions and of C's, a piece of work makes, and what it comes to."""
    count = 0

    def see(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        made = work()
    finally:
        sys.setprofile(before)
    return count, made


def data(letter: str, count: int, value: str = "") -> dict[str, Any]:
    """A ConfigMap of so many keys."""
    held = {f"{letter}{number}": value for number in range(count)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": held}


def pod(count: int) -> dict[str, Any]:
    """A Pod of so many containers."""
    containers = [{"name": f"c{number}", "image": "i"} for number in range(count)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}


def by(name: str, *, force: bool = False) -> Applicant:
    return Applicant(name, "v1", force=force)


def first(count: int) -> int:
    return calls_of(lambda: apply(None, data("a", count), by("me"), T0, MAP))[0]


def others(count: int) -> int:
    """All that was applied before is taken away."""
    live = apply(None, data("a", count), by("me"), T0, MAP)
    assert not isinstance(live, Refused)
    calls, after = calls_of(lambda: apply(live, data("b", count), by("me"), T0, MAP))
    assert after["data"] == data("b", count)["data"]
    return calls


def values(count: int) -> int:
    live = apply(None, data("a", count), by("me"), T0, MAP)
    assert not isinstance(live, Refused)
    return calls_of(lambda: apply(live, data("a", count, "x"), by("me"), T0, MAP))[0]


def contested(count: int) -> int:
    live = apply(None, data("a", count), by("me"), T0, MAP)
    assert not isinstance(live, Refused)
    calls, refused = calls_of(lambda: apply(live, data("a", count, "x"), by("other"), T0, MAP))
    assert isinstance(refused, Refused)
    return calls


def containers(count: int) -> int:
    live = apply(None, pod(1), by("me"), T0, POD)
    assert not isinstance(live, Refused)
    return calls_of(lambda: apply(live, pod(count), by("me"), T0, POD))[0]


@pytest.mark.parametrize(("work", "most"), [(first, 9), (others, 9), (values, 36), (contested, 48), (containers, 140)])
def test_what_an_apply_costs_grows_with_its_fields_and_no_faster(work: Callable[[int], int], most: int) -> None:
    few, many = work(500), work(1_000)
    assert many - few <= 500 * most
    assert many <= 2.2 * few
