"""Label selectors in both forms."""

import pytest

from actors.api.selectors import SelectorError, matches, parse_selector, selector_of

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
    with pytest.raises(SelectorError):
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
