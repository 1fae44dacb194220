"""Schemas and values: what any schema makes of any value."""

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.api.definitions.pruning import prune, settle
from pumice.cluster.api.definitions.structure import structure_problems
from pumice.cluster.api.definitions.values import value_problems
from pumice.cluster.api.definitions.work import Work
from pumice.cluster.api.refusals import Cause

Schema = dict[str, Any]


def problems(value: Any, schema: Schema, path: str = "") -> list[Cause]:
    return value_problems(value, schema, Work(value), path)


NAMES = st.sampled_from(("a", "b", "c", "spec", "status"))
SCALARS: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=3)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=12
)


def integers(low: int, high: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


def texts(least: int) -> Schema:
    return {"type": "string", "minLength": least}


def mapping(properties: dict[str, Schema], required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required}


def listed(items: Schema, sort: str) -> Schema:
    return {"type": "array", "items": items, "x-kubernetes-list-type": sort}


def open_mapping(more: Schema) -> Schema:
    return {"type": "object", "additionalProperties": more}


def either(one: Schema, other: Schema) -> Schema:
    return {**one, "anyOf": [one, other]}


FIXED: tuple[Schema, ...] = (
    {"type": "boolean"},
    {"type": "number", "default": 1},
    {"x-kubernetes-int-or-string": True},
    {"x-kubernetes-preserve-unknown-fields": True},
    {"type": "string", "nullable": True, "enum": ["a", "b"]},
)
LEAVES = (
    st.builds(integers, st.integers(), st.integers()) | st.builds(texts, st.integers(0, 3)) | st.sampled_from(FIXED)
)


def nested(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.one_of(
        st.builds(mapping, st.dictionaries(NAMES, inner, max_size=3), st.lists(NAMES, max_size=2)),
        st.builds(listed, inner, st.sampled_from(("atomic", "set"))),
        st.builds(open_mapping, inner),
        st.builds(either, inner, inner),
    )


NO_NAMES: list[str] = []
PROPERTIES = st.dictionaries(NAMES, st.recursive(LEAVES, nested, max_leaves=6), max_size=4)
SCHEMAS: st.SearchStrategy[Schema] = st.builds(mapping, PROPERTIES, st.just(NO_NAMES))
OBJECTS: st.SearchStrategy[Schema] = st.dictionaries(NAMES, VALUES, max_size=4)
WORDS = st.sampled_from(("type", "properties", "items", "enum", "required", "allOf", "pattern", "not", "a"))
ODD: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner), max_leaves=10
)


@given(SCHEMAS)
def test_generated_schemas_are_structural(schema: Schema) -> None:
    assert structure_problems(schema, "schema") == []


@given(ODD)
def test_whatever_a_schema_is_checking_it_says_so(schema: Any) -> None:
    for problem in structure_problems(schema, "schema"):
        assert problem.field.startswith("schema")


@given(SCHEMAS, OBJECTS)
def test_pruning_and_defaulting_settle_immediately(schema: Schema, obj: dict[str, Any]) -> None:
    once = deepcopy(obj)
    dropped = prune(once, schema)
    settle(once, schema, Work(once))
    again = deepcopy(once)
    assert prune(again, schema) == []
    settle(again, schema, Work(again))
    assert again == once
    assert all(path.split(".")[0].split("[")[0] in obj for path in dropped)


@given(SCHEMAS, OBJECTS)
def test_the_verdict_does_not_touch_the_value(schema: Schema, obj: dict[str, Any]) -> None:
    before = deepcopy(obj)
    found = problems(obj, schema)
    assert obj == before
    assert all(problem.message for problem in found)


@given(OBJECTS)
def test_a_schema_that_keeps_everything_drops_nothing(obj: dict[str, Any]) -> None:
    schema: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    before = deepcopy(obj)
    assert prune(obj, schema) == []
    settle(obj, schema, Work(obj))
    assert obj == before
    assert problems(obj, schema) == []


@given(st.integers(), st.integers(), st.integers())
def test_ranges(value: int, low: int, high: int) -> None:
    schema = {"type": "integer", "minimum": low, "maximum": high}
    assert (problems(value, schema, "x") == []) == (low <= value <= high)


def test_words_of_junctions() -> None:
    one: Schema = {"required": ["a"]}
    other: Schema = {"required": ["b"]}
    assert problems({"a": 1}, {"anyOf": [one, other]}) == []
    assert [p.message for p in problems({}, {"anyOf": [one, other]}, "spec")] == [
        "Invalid value: {}: spec in body must validate at least one schema (anyOf)"
    ]
    assert len(problems({"a": 1, "b": 1}, {"oneOf": [one, other]}, "spec")) == 1
    assert problems({"a": 1}, {"oneOf": [one, other]}, "spec") == []
    assert len(problems({"a": 1}, {"not": one}, "spec")) == 1
    assert len(problems({}, {"allOf": [one, other]}, "spec")) == 2
