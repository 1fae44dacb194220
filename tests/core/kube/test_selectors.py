"""Selectors as apimachinery reads them: which are refused, and what each operator matches."""

from typing import Any

import pytest

from pumice.core.kube.selectors import (
    NOTHING,
    LabelSelector,
    Requirement,
    SelectorError,
    label_selector,
    parse_int64,
    requirement,
)

LABELS = {"app": "web", "tier": "2"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "complaint"),
    [
        ("app", "In", [], "at least one"),
        ("app", "NotIn", [], "at least one"),
        ("app", "Exists", ["x"], "no values"),
        ("app", "DoesNotExist", ["x"], "no values"),
        ("app", "Gt", ["1", "2"], "exactly one integer"),
        ("app", "Lt", ["one"], "exactly one integer"),
        ("app", "Lt", ["9223372036854775808"], "exactly one integer"),
        ("app", "Gt", ["-1"], "value '-1'"),
        ("app", "Equals", ["1"], "unknown operator"),
        ("", "Exists", [], "key ''"),
        ("-app", "Exists", [], "both ends"),
        ("Example.com/app", "Exists", [], "DNS subdomain"),
        ("/app", "Exists", [], "DNS subdomain"),
        ("a" * 64, "Exists", [], "63"),
        ("app", "In", ["a b"], "value 'a b'"),
        ("app", "In", ["a" * 64], "value"),
    ],
)
def test_what_kubernetes_refuses(key: str, operator: str, values: list[str], complaint: str) -> None:
    with pytest.raises(SelectorError, match=complaint):
        requirement({"key": key, "operator": operator, "values": values})


@pytest.mark.parametrize(
    ("operator", "values", "accepted"),
    [
        ("In", ["2", "3"], {"2"}),
        ("NotIn", ["2"], {"10", "x", None, "-5"}),
        ("Exists", [], {"2", "10", "x", "-5"}),
        ("DoesNotExist", [], {None}),
        ("Gt", ["2"], {"10"}),
        ("Lt", ["3"], {"2", "-5"}),
    ],
)
def test_what_each_operator_accepts(operator: str, values: list[str], accepted: set[str | None]) -> None:
    wanted = requirement({"key": "example.com/k", "operator": operator, "values": values})
    assert {v for v in ("2", "10", "x", "-5", None) if wanted.accepts(v)} == accepted


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("+7", 7),
        ("-0", 0),
        ("007", 7),
        ("", None),
        ("1_0", None),
        (" 1", None),
        ("9223372036854775808", None),
    ],
)
def test_integers_are_gos(text: str, number: int | None) -> None:
    assert parse_int64(text) == number


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "3"}}, False),
        ({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["2"]}]}, False),
    ],
)
def test_label_selectors(selector: dict[str, Any] | None, matches: bool) -> None:
    assert label_selector(selector).matches(LABELS) is matches


def test_label_selectors_know_no_comparison() -> None:
    with pytest.raises(SelectorError, match="unknown operator 'Gt'"):
        label_selector({"matchExpressions": [{"key": "tier", "operator": "Gt", "values": ["1"]}]})


def test_an_absent_selector_is_not_an_empty_one() -> None:
    assert not NOTHING.empty
    assert label_selector({}).empty
    assert NOTHING.restricted_to({"a": "b"}) is NOTHING


def test_a_restricted_selector_asks_for_more() -> None:
    selector = LabelSelector((Requirement("app", "Exists"),)).restricted_to({"tier": "2"})
    assert selector.matches(LABELS)
    assert not selector.matches({"app": "web", "tier": "3"})


def test_integers_longer_than_any_label_are_none() -> None:
    assert parse_int64("0" * 60 + "7") == 7
    assert parse_int64("1" * 5_000) is None  # Python turns no longer text than 4,300 digits into a number
    with pytest.raises(SelectorError, match="exactly one integer"):
        requirement({"key": "app", "operator": "Gt", "values": ["1" * 5_000]})
