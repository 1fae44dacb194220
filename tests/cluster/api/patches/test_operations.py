"""JSON patches that are small and would make much."""

from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.api.patches.operations import MOST_COPIED, apply_operations
from pumice.core.messages.replies import Refused

OBJECT: dict[str, Any] = {"metadata": {"name": "a"}, "data": {"a": ["x"] * 10}}


def told(operations: list[Any]) -> str:
    refused = apply_operations(OBJECT, operations)
    assert isinstance(refused, Refused), refused
    assert refused.code == 422
    return refused.message


def copy(source: str, target: str) -> dict[str, str]:
    return {"op": "copy", "from": source, "path": target}


def test_copies_that_double_are_stopped_early() -> None:
    began = process_time()
    assert f"the copies take more than {MOST_COPIED} bytes" in told([copy("/data", f"/data/c{n}") for n in range(24)])
    assert process_time() - began < 0.5  # they would make 160 million values


def test_copies_are_counted_over_all_operations() -> None:
    lines = "x" * (MOST_COPIED // 4)
    grown = [{"op": "add", "path": "/data/b", "value": lines}]
    three = [copy("/data/b", f"/data/c{number}") for number in range(3)]
    assert not isinstance(apply_operations(OBJECT, grown + three), Refused)
    between = [{"op": "remove", "path": "/data/c0"}]
    assert "the copies take more than" in told(grown + three + between + [copy("/data/b", "/data/c0")])


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "copy", "path": "/data/b"},
        {"op": "copy", "from": "/nowhere/at/all", "path": "/data/b"},
        {"op": "copy", "from": 5, "path": "/data/b"},
        {"op": "copy", "from": "no pointer", "path": "/data/b"},
        {"op": "copy", "from": "/data/a/-", "path": "/data/b"},
        ["copy"],
        "copy",
        None,
        {"op": ["copy"]},
    ],
)
def test_what_is_no_operation_is_refused(operation: Any) -> None:
    assert told([operation])


def test_replacing_what_is_not_there_sets_it_in_a_mapping_alone() -> None:
    replaced: list[Any] = [
        {"op": "replace", "path": "/data/b", "value": []},
        {"op": "replace", "path": "/data/b", "value": [1]},
    ]
    result = apply_operations(OBJECT, replaced)
    assert isinstance(result, dict)
    assert result["data"] == {**OBJECT["data"], "b": [1]}
    assert told([{"op": "replace", "path": "/data/a/10", "value": "y"}])
    assert told([{"op": "replace", "path": "/nowhere/b", "value": "y"}])
    assert told([{"op": "replace", "path": "/data/b"}])


def test_depth_is_bounded() -> None:
    moves: list[Any] = [{"op": "move", "from": "/data", "path": "/d"}, {"op": "add", "path": "/data", "value": {}}]
    moves += [{"op": "move", "from": "/d", "path": "/data/d"}, {"op": "move", "from": "/data", "path": "/d"}]
    result = apply_operations(OBJECT, moves[:2] + [*moves[2:], {"op": "add", "path": "/data", "value": {}}] * 2_000)
    assert isinstance(result, dict | Refused)


POINTERS = st.sampled_from(("", "/data", "/data/a", "/data/a/0", "/data/a/-", "/metadata", "/x", "/data/b"))
VALUES: st.SearchStrategy[Any] = st.sampled_from((None, 0, [], [{}], [{}, {}], {"a": 1}))
OPERATIONS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"op": st.sampled_from(("add", "remove", "replace", "move", "copy", "test"))},
    optional={"path": POINTERS, "from": POINTERS, "value": VALUES},
)


@given(st.lists(OPERATIONS, max_size=12))
def test_any_operations_give_an_object_or_a_refusal_and_touch_nothing(operations: list[Any]) -> None:
    before = repr(OBJECT)
    assert isinstance(apply_operations(OBJECT, operations), dict | Refused)
    assert repr(OBJECT) == before
