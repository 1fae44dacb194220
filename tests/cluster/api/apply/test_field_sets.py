"""Sets of fields: the algebra of sets of paths, and FieldsV1 trees there and back."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.api.apply.field_sets import NOTHING, FieldSet, Path, field_set, from_fields, to_fields

STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"x"', "v:1", "f:a.b/c"])
PATHS = st.frozensets(st.lists(STEPS, min_size=1, max_size=4).map(tuple), max_size=8)


def holds_no_empty_set(fields: FieldSet) -> bool:
    """An empty set somewhere below would be a branch that nothing is in."""
    return all(below and holds_no_empty_set(below) for below in fields.inside.values())


@given(PATHS)
def test_a_set_holds_the_paths_that_it_is_made_of(paths: frozenset[Path]) -> None:
    found = list(field_set(paths))
    assert len(found) == len(paths)
    assert frozenset(found) == paths
    assert bool(field_set(paths)) == bool(paths)


OPERATIONS: list[Callable[[Any, Any], Any]] = [
    lambda one, other: one | other,
    lambda one, other: one - other,
    lambda one, other: one & other,
]


@given(PATHS, PATHS)
@pytest.mark.parametrize("operation", OPERATIONS, ids=["or", "sub", "and"])
def test_operations_are_those_of_sets_of_paths(
    operation: Callable[[Any, Any], Any], one: frozenset[Path], other: frozenset[Path]
) -> None:
    got = operation(field_set(one), field_set(other))
    assert got == field_set(operation(one, other))
    assert holds_no_empty_set(got)


@given(PATHS, PATHS)
def test_a_set_is_within_another_as_sets_of_paths_are(one: frozenset[Path], other: frozenset[Path]) -> None:
    assert (field_set(one) <= field_set(other)) == (one <= other)
    assert field_set(one) <= field_set(one | other)


@given(PATHS, st.frozensets(STEPS, max_size=3))
def test_branches_go_with_what_is_in_them(paths: frozenset[Path], steps: frozenset[str]) -> None:
    left = field_set(paths).without_branches(steps)
    assert left == field_set(path for path in paths if path[0] not in steps)


def test_the_object_itself_is_no_field() -> None:
    assert field_set([()]) == NOTHING


@given(PATHS)
def test_a_tree_tells_the_set(paths: frozenset[Path]) -> None:
    assert from_fields(to_fields(field_set(paths))) == field_set(paths)


@given(st.recursive(st.none() | st.text(max_size=3), lambda inner: st.dictionaries(st.text(max_size=3), inner)))
def test_any_tree_can_be_read(tree: object) -> None:
    found = from_fields(tree)
    assert holds_no_empty_set(found)
    assert from_fields(to_fields(found)) == found


def test_a_tree_is_in_the_order_of_its_steps_and_says_which_nodes_belong_to_the_set() -> None:
    tree = to_fields(field_set([("f:b", "f:y"), ("f:b", "f:x"), ("f:b",), ("f:a", "f:z")]))
    assert list(tree) == ["f:a", "f:b"]
    assert list(tree["f:b"]) == [".", "f:x", "f:y"]
    assert tree == {"f:a": {"f:z": {}}, "f:b": {".": {}, "f:x": {}, "f:y": {}}}


@pytest.mark.parametrize(
    ("tree", "paths"),
    [
        ({"f:a": None, "f:b": "x", "f:c": {"junk": {}}}, [("f:a",), ("f:b",), ("f:c",)]),
        ({".": {}, "f:a": {"f:b": {}}}, [("f:a", "f:b")]),
        ({"f:a": {".": {}, "f:b": {}}, "junk": {"f:c": {}}}, [("f:a",), ("f:a", "f:b")]),
        ([], []),
    ],
)
def test_what_is_not_well_formed_is_passed_over(tree: Any, paths: list[Path]) -> None:
    assert from_fields(tree) == field_set(paths)


def test_a_tree_is_read_to_two_hundred_steps() -> None:
    tree: dict[str, Any] = {}
    for _ in range(300):
        tree = {".": {}, "f:a": tree}
    assert max(map(len, from_fields(tree))) == 200
