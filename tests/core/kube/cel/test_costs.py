"""What an expression costs is counted before it is done: a short one over a short list can mean very much work."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from pumice.cluster.api.definitions.rules import rule_problems
from pumice.cluster.api.definitions.work import TooDearError, Work
from pumice.core.kube.cel.costs import MOST, SPEND, StepsLeft
from pumice.core.kube.cel.environment import LISTS, OPERATORS, OPTIONALS, STANDARD
from pumice.core.kube.cel.evaluating import evaluate
from pumice.core.kube.cel.reading import ExpressionError, read_expression
from pumice.core.kube.cel.types import signature

ONES = [1] * 30_000
BODY = " && ".join(["x > 0"] * 1_000)
DEAR = [
    "self.l.all(x, self.l.isSorted())",
    "self.l.all(x, self.l.max() >= x)",
    "self.l.all(x, self.l.min() <= x)",
    "self.l.all(x, !((x + 1) in self.l))",
    "self.l.map(x, self.l.sum()).size() > 0",
    "self.l.all(x, self.l == self.l)",
    "self.l.all(x, self.l != [])",
    "self.l.all(x, (self.l + self.l).size() > 0)",
    "self.l.all(x, !self.s.contains('b'))",
    "self.l.all(x, self.s.lowerAscii() != '')",
    "self.l.all(x, !self.s.matches('a+b'))",
    "self.l.exists(x, self.s.matches('('))",
    "self.l.all(x, [self.l, self.l].isSorted())",
    "self.l.map(x, self.l) == self.l.map(x, self.l)",
    f"self.l.all(x, {BODY})",
    "self.l.all(x, self.l.all(y, self.l.all(z, x == z)))",
]


@pytest.mark.parametrize("rule", DEAR)
def test_what_costs_too_much_is_refused_and_hardly_begun(rule: str) -> None:
    value = {"l": ONES, "s": "a" * 30_000}
    work = Work(value)
    with pytest.raises(TooDearError, match="asks for too much work"):
        rule_problems(value, {"x-kubernetes-validations": [{"rule": rule}]}, work, "spec")
    assert work.left > -200_000  # one look at all that is there, beyond what there was


@pytest.mark.parametrize(
    "rule",
    [
        "self.l.all(x, x > 0)",
        "self.l.isSorted() && self.l.max() == 1 && self.l.sum() == 5000 && 1 in self.l && self.l == self.l",
        "self.l.exists(x, 'a-b.c'.matches('^[a-z]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]+)*$'))",
        "self.few.all(a, self.few.exists_one(b, a.name == b.name && (!has(a.port) || a.port == b.port)))",
    ],
)
def test_rules_as_people_write_them_are_answered(rule: str) -> None:
    value = {"l": [1] * 5_000, "few": [{"name": str(number), "port": number} for number in range(30)]}
    assert rule_problems(value, {"x-kubernetes-validations": [{"rule": rule}]}, Work(value), "spec") == []


ONE_LOOK = {"size", "dyn", "type", "first", "last", "optional.of", "optional.ofNonZeroValue", "value", "hasValue", "or"}


def called(text: str) -> str:
    """Return a call of a function with a list for each of its arguments."""
    one = signature(text)
    if text in OPERATORS:
        return f"{one.name}(self)" if len(one.params) == 1 else f"self {one.name} self"
    arguments = ", ".join("self" for _ in one.params[one.method :])
    return f"{'self.' if one.method else ''}{one.name}({arguments})"


CALLS = sorted(
    {
        called(text)
        for library in (OPERATORS, STANDARD, LISTS, OPTIONALS)
        for text in library
        if "list<" in text.partition(" ->")[0] and signature(text).name not in {*ONE_LOOK, "orValue", "optional.unwrap"}
    }
)


@pytest.mark.parametrize("text", CALLS)
def test_every_operation_that_looks_at_a_list_pays_for_it(text: str) -> None:
    """Whether or not it has an answer: looking comes after paying."""
    left = StepsLeft()
    with contextlib.suppress(ExpressionError):
        evaluate(read_expression(text), {"self": [1] * 1_000, SPEND: left})
    assert MOST - left.left >= 500


@pytest.mark.parametrize(
    "text", ["self || false", "dev[self]", "[self].all(x, x)", "!self", "dev[self[0]]", "semver(self[0])"]
)
def test_an_error_says_little_of_a_long_value(text: str) -> None:
    names: dict[str, Any] = {"self": ["x" * 1_000] * 1_000, "dev": {}}
    with pytest.raises(ExpressionError) as error:
        evaluate(read_expression(text), names)
    assert len(str(error.value)) < 200


def test_a_joined_text_is_bounded() -> None:
    names = {"self": ["x"] * 10_000, "by": "y" * 1_000}
    with pytest.raises(ExpressionError, match="gets too long"):
        evaluate(read_expression("self.join(by)"), names)
