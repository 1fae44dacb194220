"""Scalars mean what yaml.v2 says they mean: the rows are its answers."""

import math

import pytest

from pumice.config.scalars import Scalar, key_text, resolve_for_api, resolve_plain, resolve_tagged

YAML_V2: tuple[tuple[str, Scalar], ...] = (
    ("y", True), ("Yes", True), ("ON", True), ("True", True), ("n", False), ("off", False), ("FALSE", False),
    ("nO", "nO"), ("tRUE", "tRUE"), ("yes!", "yes!"),
    ("", None), ("~", None), ("Null", None), ("nULL", "nULL"),
    ("0", 0), ("010", 8), ("0o17", 15), ("0x1F", 31), ("-0x10", -16), ("0b101", 5), ("1_000", 1000), ("+3", 3),
    ("08", 8.0), ("1.", 1.0), (".5e3", 500.0), ("1e3", 1000.0), ("1E+3", 1000.0), ("-.5", -0.5),
    ("9223372036854775807", 9223372036854775807), ("18446744073709551615", 18446744073709551615),
    ("18446744073709551616", 18446744073709551616.0), ("+9223372036854775808", 9223372036854775808.0),
    ("0xFFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFFF"), ("1e999", "1e999"),
    (".inf", math.inf), ("-.Inf", -math.inf), ("+.INF", math.inf), (".infinity", ".infinity"),
    ("1:30", "1:30"), ("10:00-21:00", "10:00-21:00"), ("2001-01-01", "2001-01-01"), ("100m", "100m"), ("3m", "3m"),
    ("-", "-"), ("+", "+"), (".", "."), ("0x", "0x"), ("0b2", "0b2"), ("1.5.2", "1.5.2"),
    ("enqueue, allocate", "enqueue, allocate"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "value"), YAML_V2)
def test_plain(text: str, value: Scalar) -> None:
    found = resolve_plain(text)
    assert (type(found), found) == (type(value), value)


def test_not_a_number() -> None:
    value = resolve_plain(".nan")
    assert isinstance(value, float)
    assert math.isnan(value)


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [
        ("str", "5", "5"),
        ("int", "5", 5),
        ("float", "5", 5.0),
        ("bool", "on", True),
        ("null", "~", None),
        ("binary", "x", "x"),
    ],
)
def test_tagged(tag: str, text: str, value: Scalar) -> None:
    found = resolve_tagged(f"tag:yaml.org,2002:{tag}", text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(("tag", "text"), [("int", "x"), ("int", "true"), ("bool", "1"), ("float", "x"), ("null", "x")])
def test_a_tag_that_lies(tag: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"is not a {tag}"):
        resolve_tagged(f"tag:yaml.org,2002:{tag}", text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000), ("1.0", 1), ("08", 8), ("-0.0", 0), ("1.5", 1.5), ("1e21", 1e21), ("1e17", 10**17),
        ("9007199254740993e3", 9007199254740993000), ("9223372036854775808", 2.0**63), ("y", True), ("1:30", "1:30"),
        ("-9223372036854775809", -(2.0**63)), ("1e-400", 0),
    ],
)  # fmt: skip
def test_resolve_for_api_gives_what_json_carries(text: str, value: Scalar) -> None:
    found = resolve_for_api(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize("text", [".inf", "-.inf", ".nan"])
def test_resolve_for_api_refuses_what_json_has_no_number_for(text: str) -> None:
    with pytest.raises(ValueError, match="JSON has no number"):
        resolve_for_api(text)


@pytest.mark.parametrize(
    ("key", "text"),
    [(True, "true"), (False, "false"), (8, "8"), (1.5, "1.5"), (1e3, "1000"), (1e6, "1e+06"), (1.25e-7, "1.25e-07"),
     (0.0, "0"), (math.inf, ".inf"), ("a", "a")],
)  # fmt: skip
def test_key_text_writes_keys_as_go_does(key: Scalar, text: str) -> None:
    assert key_text(key) == text
