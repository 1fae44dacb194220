"""Quantities: rows that Go's own parser gave, and properties of what it never says."""

import math
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.errors import QuantityError
from pumice.core.quantity import (
    Quantity,
    QuantityFormat,
    format_bytes,
    format_milli,
    format_whole,
    parse_quantity,
    quantity_of,
)

# text, Value(), MilliValue(), String(): what k8s.io/apimachinery v0.35.3 answers
GO = (
    ("0", 0, 0, "0"),
    ("000", 0, 0, "0"),
    ("-0", 0, 0, "0"),
    ("1000", 1000, 1000000, "1k"),
    ("1000000", 1000000, 1000000000, "1M"),
    ("3000M", 3000000000, 3000000000000, "3G"),
    ("2048", 2048, 2048000, "2048"),
    ("1024Ki", 1048576, 1048576000, "1Mi"),
    ("1025Ki", 1049600, 1049600000, "1025Ki"),
    ("1023", 1023, 1023000, "1023"),
    ("0.5", 1, 500, "500m"),
    ("+.5", 1, 500, "500m"),
    (".5Gi", 536870912, 536870912000, "512Mi"),
    ("0.3Gi", 322122548, 322122547200, "322122547200m"),
    ("1.25Ki", 1280, 1280000, "1280"),
    ("100Gi", 107374182400, 107374182400000, "100Gi"),
    # rounded up, to nano at the finest
    ("1.0001", 2, 1001, "1000100u"),
    ("1.00000000001", 2, 1001, "1000000001n"),
    ("0.1n", 1, 1, "1n"),
    ("1e-10", 1, 1, "1e-9"),
    ("0.0000001Ki", 1, 1, "102400n"),
    # negative ones: away from zero in the narrow form, up in the wide one
    ("-1500m", -2, -1500, "-1500m"),
    ("-1500u", -1, -2, "-1500u"),
    ("-0.1n", 1, 1, "-1n"),
    ("-2Ki", -2048, -2048000, "-2Ki"),
    # beyond int64: wrapped, zero, or capped (binary only)
    ("5E", 5000000000000000000, 0, "5E"),
    ("10E", 0, 0, "10E"),
    ("8Ei", 9223372036854775807, -1000, "9223372036854775807"),
    ("-9Ei", -9223372036854775807, 1000, "-9223372036854775807"),
    ("521056540966654.433G", -8638883419271497152, -5807192775426995712, "521056540966654.433G"),
    ("12345678901234567890", -6101065172474983726, 4807115922877858896, "12345678901234567890"),
    ("-12345678901234567890", -5097733591, -5097733592001, "-12345678901234567890"),
    ("999999999999999999", 999999999999999999, 3875820019684211736, "999999999999999999"),
    # canonical texts stay as they were written
    ("01", 1, 1000, "01"),
    ("+5", 5, 5000, "+5"),
    ("1.", 1, 1000, "1."),
    ("1e3", 1000, 1000000, "1e3"),
    ("1.5e3", 1500, 1500000, "1500"),
    ("3e-1", 1, 300, "300e-3"),
    ("1e4294967299", 1000, 1000000, "1e4294967299"),  # the exponent is an int32
    # no digits at all
    ("e3", 0, 0, "0"),
    ("-", 0, 0, "0"),
    (".", 0, 0, "0"),
    ("-m", 0, 0, "0"),
)
REFUSED = (
    "", " 1", "1 ", "1\n", "1kk", "e", "1e", "1e3.5", "1i", "Kie", "1ki", "0b1", "1_000", "٣", "1,5", "--1", "1.2.3",
    "5e2Ki", "1e99999999999999999999", "e-10", "9" * 5000, "12345678901234567890e99999",
)  # fmt: skip


@pytest.mark.parametrize(("text", "value", "milli", "canonical"), GO)
def test_as_go(text: str, value: int, milli: int, canonical: str) -> None:
    quantity = parse_quantity(text)
    assert (quantity.value(), quantity.milli_value(), quantity.canonical()) == (value, milli, canonical)


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert caught.value.code == 400


def test_the_text_is_named() -> None:
    with pytest.raises(QuantityError, match=r"quantity '1GiB': expected a number and a suffix"):
        parse_quantity("1GiB")


whole = st.integers(min_value=-(10**17), max_value=10**17)


@given(whole)
def test_milli_goes_there_and_back(milli: int) -> None:
    quantity = parse_quantity(format_milli(milli))
    assert quantity.compare(Quantity(milli, -3)) == 0
    assert quantity.milli_value() == milli


@given(st.integers(min_value=0, max_value=10**17))
def test_bytes_go_there_and_back(count: int) -> None:
    assert parse_quantity(format_bytes(count)).value() == count


@given(whole)
def test_counts_go_there_and_back(count: int) -> None:
    assert parse_quantity(format_whole(count)).value() == count


@given(whole, st.integers(min_value=-9, max_value=3))  # beyond exa Go knows no suffix and prints none
def test_canonical_means_the_same(unscaled: int, exponent: int) -> None:
    quantity = Quantity(unscaled, exponent)
    assert parse_quantity(quantity.canonical()).compare(quantity) == 0


@given(whole, whole)
def test_sum_and_order(left: int, right: int) -> None:
    assert Quantity(left, -3).plus(Quantity(right, -3)).compare(Quantity(left + right, -3)) == 0
    assert Quantity(left).compare(Quantity(right)) == (left > right) - (left < right)
    assert Quantity(left).sign() == (left > 0) - (left < 0)


def test_a_zero_takes_the_other_format() -> None:
    total = parse_quantity("0").plus(parse_quantity("1Ki"))
    assert total.format is QuantityFormat.BINARY_SI
    assert total.canonical() == "1Ki"
    assert parse_quantity("0").plus(parse_quantity("+5")).canonical() == "5"


def test_sums_beyond_int64_are_exact() -> None:
    largest = parse_quantity("9223372036854775807")
    assert largest.plus(parse_quantity("1")).canonical() == "9223372036854775808"


def test_sums_too_far_apart_are_refused() -> None:
    with pytest.raises(QuantityError, match="exponent"):
        parse_quantity("1e2147483647").plus(parse_quantity("1"))


def test_json_and_yaml_values() -> None:
    assert quantity_of(" 1Gi ").value() == 2**30
    assert quantity_of(2).canonical() == "2"
    assert quantity_of(0.5).canonical() == "500m"
    assert quantity_of(1e-7).canonical() == "100e-9"
    assert quantity_of(1e21).canonical() == "1e+21"
    assert quantity_of(123456.0).canonical() == "123456"
    assert quantity_of(None).value() == 0


@given(st.floats(min_value=1e-9, max_value=1e15))
def test_floats_keep_their_value(value: float) -> None:
    assert quantity_of(value).milli_value() >= math.floor(value * 1000 * (1 - 1e-12))


@pytest.mark.parametrize("value", [True, [], {}, math.nan, math.inf])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(QuantityError):
        quantity_of(value)


@pytest.mark.parametrize(
    "text",
    ["1" * 20_000 + "!", "0" * 60_000 + "!", "1." + "1" * 60_000 + "!", "1e" + "1" * 60_000, "1" + "eE" * 30_000 + "!"],
)
def test_long_texts_are_refused_immediately(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "text", ["0" * 500 + "!", "1" * 500 + "!", "1" * 250 + "e" * 250 + "!", "1" * 400 + "e" + "1" * 99 + "!"]
)
def test_nothing_is_tried_twice(text: str) -> None:
    began = process_time()
    for _ in range(100):
        with pytest.raises(QuantityError):
            parse_quantity(text)
    assert process_time() - began < 0.2  # of 500 letters a cubic reader takes seconds each


@pytest.mark.parametrize("text", ["1e500", "9" * 500 + "e3", "1" + "0" * 500, "1e-512", "0.5e500"])
def test_large_ones_are_printed_as_they_are(text: str) -> None:
    printed = parse_quantity(text).plus(parse_quantity("1")).canonical()
    assert parse_quantity(printed).compare(parse_quantity(text).plus(parse_quantity("1"))) == 0
