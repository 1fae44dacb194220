"""A short schema and a short object can mean very much work: it is counted, and ends in a refusal."""

from collections.abc import Callable
from typing import Any

import pytest

from pumice.cluster.api.definitions.pruning import settle
from pumice.cluster.api.definitions.structure import MOST_BAD_PATTERNS, structure_problems
from pumice.cluster.api.definitions.values import value_problems
from pumice.cluster.api.definitions.work import EACH, STEPS, TooDearError, Work, size_of

INTEGERS = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
DEAR = "(a|b)*a(a|b){500}c"  # no engine has a short automaton for it


def of_items(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"type": "array", "items": items}}}


def of_one(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


DEAR_ONES: list[tuple[Callable[..., Any], Any, dict[str, Any]]] = [
    (value_problems, "x" * 60_000, of_one({"allOf": [{"maxLength": 3}] * 5_000})),
    (value_problems, ["ab" * 50] * 500, of_items({"type": "string", "pattern": DEAR})),
    (value_problems, ["ab" * 3_900] * 10, of_items({"type": "string", "pattern": DEAR})),
    (value_problems, list(range(20_000)), of_items({"enum": list(range(-5_000, 0))})),
    (value_problems, list(range(1_000)), of_items({"allOf": [INTEGERS] * 1_000})),
    (value_problems, [{}] * 1_000, of_items({"required": [str(number) for number in range(1_000)]})),
    (settle, [{} for _ in range(20_000)], of_items({"properties": {"x": {"default": ["x" * 600] * 100}}})),
    (settle, [{} for _ in range(20_000)], of_items({"properties": {str(number): {} for number in range(5_000)}})),
]
IDS = ["values shown", "patterns", "long texts", "choices", "alternatives", "required", "defaults", "properties"]


@pytest.mark.parametrize(("judge", "value", "schema"), DEAR_ONES, ids=IDS)
def test_the_work_of_an_object_is_bounded(judge: Callable[..., Any], value: Any, schema: dict[str, Any]) -> None:
    with pytest.raises(TooDearError, match="asks for too much work"):
        judge({"a": value}, schema, Work({"a": value}))


def test_an_object_that_says_much_may_cost_much() -> None:
    value = {"a": list(range(30_000))}
    work = Work(value)
    assert work.left == STEPS + EACH * size_of(value)
    assert value_problems(value, of_items({"type": "integer", "minimum": 0}), work) == []
    assert work.left >= 0


def test_a_text_too_long_for_its_pattern_is_refused_not_searched() -> None:
    value = {"a": "ab" * 4_100}
    (cause,) = value_problems(value, of_one({"type": "string", "pattern": DEAR}), Work(value))
    assert "too long for a pattern of 507 steps" in cause.message


def test_bad_patterns_are_told_of_and_then_no_longer_tried() -> None:
    schema = {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "pattern": f"\\pL{{{n}}}"} for n in range(900, 1000)},
    }
    found = structure_problems(schema, "schema")
    assert len(found) == MOST_BAD_PATTERNS
    assert all("must be a valid regular expression" in cause.message for cause in found)


def test_the_patterns_of_a_schema_are_counted_together_and_each_once() -> None:
    properties = {f"p{n}": {"type": "string", "pattern": f"x{n % 50}[a-z]{{400}}"} for n in range(100)}
    found = structure_problems({"type": "object", "properties": properties}, "schema")
    assert any("more than 20000 steps together" in cause.message for cause in found)
    same = {f"p{n}": {"type": "string", "pattern": "[a-z]{400}"} for n in range(100)}
    assert structure_problems({"type": "object", "properties": same}, "schema") == []
