"""Label selectors in both forms."""

from time import process_time

import pytest

from pumice.cluster.api.selectors import MOST_REQUIREMENTS, SelectorTextError, matches, parse_selector, selector_of

LABELS = {"app": "web", "tier": "front", "volcano.sh/job-name": "j"}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier=front", True),
        ("app=db", False),
        ("app!=db", True),
        ("absent!=x", True),
        ("app in (db, web)", True),
        ("app in (db)", False),
        ("tier notin (back)", True),
        ("absent notin (x)", True),
        ("app", True),
        ("!app", False),
        ("! absent", True),
        ("volcano.sh/job-name=j, tier in (front,back), !absent", True),
        ("app=", False),
    ],
)
def test_text(text: str, holds: bool) -> None:
    assert matches(parse_selector(text), LABELS) is holds


@pytest.mark.parametrize("text", ["app=a=b", "a b", "app in web", "=x", "app=a b", "app in (a!b)", ","])
def test_no_selector(text: str) -> None:
    with pytest.raises(SelectorTextError):
        parse_selector(text)


@pytest.mark.parametrize(
    ("structured", "holds"),
    [
        (None, True),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["front"]}]}, False),
        ({"matchExpressions": [{"key": "absent", "operator": "DoesNotExist"}]}, True),
    ],
)
def test_structured(structured: dict[str, object] | None, holds: bool) -> None:
    assert matches(selector_of(structured), LABELS) is holds


@pytest.mark.parametrize(
    "text",
    [
        "," * 20_000,
        "a," * 20_000 + "a",
        "a=" + " " * 60_000 + "!",
        " " * 60_000 + "!!",
        "a" + " " * 60_000 + "in (!",
        "(" * 20_000,
        "a in (" + "b," * 20_000,
        ",".join(f"a!=b{number}" for number in range(6_000)),
        "x" * 60_000,
    ],
)
def test_long_selectors_are_refused_immediately(text: str) -> None:
    began = process_time()
    with pytest.raises(SelectorTextError) as caught:
        parse_selector(text)
    assert process_time() - began < 0.2  # quadratic readers take from half a second to a minute
    assert len(str(caught.value)) < 400


def test_one_requirement_may_have_many_values_and_a_selector_many_requirements() -> None:
    values = ",".join(f"v{number}" for number in range(5_000))
    text = ",".join([f"app in ({values}, web)"] + ["app"] * (MOST_REQUIREMENTS - 1))
    assert matches(parse_selector(text), LABELS)
    with pytest.raises(SelectorTextError, match="more than 256 requirements"):
        parse_selector(text + ",app")
