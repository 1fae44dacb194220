"""Numbers as Go reads them; the tables are what strconv of Go 1.26.8 returned."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.go_numbers import parse_float, parse_int, read_float, read_int, value_of

FLOATS = {
    "": (0.0, False),
    "1": (1.0, True),
    "+1": (1.0, True),
    "-1": (-1.0, True),
    "1_000": (1000.0, True),
    "_1": (0.0, False),
    "1_": (0.0, False),
    "1__0": (0.0, False),
    "1_.5": (0.0, False),
    "1._5": (0.0, False),
    "1.5_0": (1.5, True),
    "1e1_0": (10000000000.0, True),
    "1e_1": (0.0, False),
    " 1": (0.0, False),
    "1 ": (0.0, False),
    "\n1": (0.0, False),
    "\u0663": (0.0, False),
    ".5": (0.5, True),
    "5.": (5.0, True),
    ".": (0.0, False),
    "+.5": (0.5, True),
    "1e5": (100000.0, True),
    "1E+5": (100000.0, True),
    "1e": (0.0, False),
    "1e400": (math.inf, False),
    "-1e400": (-math.inf, False),
    "1e-400": (0.0, True),
    "inf": (math.inf, True),
    "-Inf": (-math.inf, True),
    "+INFINITY": (math.inf, True),
    "infinit": (0.0, False),
    "nan": (math.nan, True),
    "+nan": (0.0, False),
    "-NaN": (0.0, False),
    "NAN": (math.nan, True),
    "0x10": (0.0, False),
    "0x1p4": (16.0, True),
    "0X1.8P1": (3.0, True),
    "0x.p1": (0.0, False),
    "0x1_0p0": (16.0, True),
    "0x_1p0": (1.0, True),
    "0_x1p0": (0.0, False),
    "0x1p1e": (0.0, False),
    "0b1": (0.0, False),
    "1d": (0.0, False),
    "1f": (0.0, False),
    "0x1p2000": (math.inf, False),
    "0x1p-2000": (0.0, True),
    "00_1": (1.0, True),
    "1e5_": (0.0, False),
    "-": (0.0, False),
    "+": (0.0, False),
    "--1": (0.0, False),
    "9007199254740993": (9007199254740992.0, True),
    "4.9e-324": (5e-324, True),
    "2e-324": (0.0, True),
    "1.7976931348623159e308": (math.inf, False),
}
INTS = {
    "": ((0, False), (0, False), (0, False)),
    "1": ((1, True), (1, True), (1, True)),
    "+1": ((1, True), (1, True), (1, True)),
    "-1": ((-1, True), (-1, True), (-1, True)),
    "1_000": ((1000, True), (0, False), (0, False)),
    "_1": ((0, False), (0, False), (0, False)),
    "1_": ((0, False), (0, False), (0, False)),
    "1__0": ((0, False), (0, False), (0, False)),
    " 1": ((0, False), (0, False), (0, False)),
    "1 ": ((0, False), (0, False), (0, False)),
    "010": ((8, True), (10, True), (10, True)),
    "0o10": ((8, True), (0, False), (0, False)),
    "0O7": ((7, True), (0, False), (0, False)),
    "08": ((0, False), (8, True), (8, True)),
    "0_8": ((0, False), (0, False), (0, False)),
    "0_7": ((7, True), (0, False), (0, False)),
    "0x1F": ((31, True), (0, False), (0, False)),
    "0x_1f": ((31, True), (0, False), (0, False)),
    "0x1_": ((0, False), (0, False), (0, False)),
    "0b11": ((3, True), (0, False), (0, False)),
    "0B2": ((0, False), (0, False), (0, False)),
    "-0x10": ((-16, True), (0, False), (0, False)),
    "+-1": ((0, False), (0, False), (0, False)),
    "\u0663": ((0, False), (0, False), (0, False)),
    "9223372036854775807": ((9223372036854775807, True), (2147483647, False), (9223372036854775807, True)),
    "9223372036854775808": ((9223372036854775807, False), (2147483647, False), (9223372036854775807, False)),
    "-9223372036854775808": ((-9223372036854775808, True), (-2147483648, False), (-9223372036854775808, True)),
    "-9223372036854775809": ((-9223372036854775808, False), (-2147483648, False), (-9223372036854775808, False)),
    "99999999999999999999999": ((9223372036854775807, False), (2147483647, False), (9223372036854775807, False)),
    "99999999999999999999999x": ((9223372036854775807, False), (2147483647, False), (9223372036854775807, False)),
    "0x": ((0, False), (0, False), (0, False)),
    "0": ((0, True), (0, True), (0, True)),
    "00": ((0, True), (0, True), (0, True)),
    "-0": ((0, True), (0, True), (0, True)),
    "0_": ((0, False), (0, False), (0, False)),
    "1e3": ((0, False), (0, False), (0, False)),
}
"""Of base 0, of base 10 with 32 bits and with 64."""


@pytest.mark.parametrize("text", FLOATS)
def test_fraction_is_read_as_go_reads_it(text: str) -> None:
    number, is_valid = FLOATS[text]
    assert read_float(text).value == pytest.approx(number, rel=0, abs=0, nan_ok=True)
    assert read_float(text).is_valid == (parse_float(text) is not None) == is_valid


@pytest.mark.parametrize("text", INTS)
def test_whole_number_is_read_as_go_reads_it(text: str) -> None:
    assert (read_int(text, base=0), read_int(text, bits=32), read_int(text)) == INTS[text]


@given(st.integers(), st.sampled_from([8, 32, 64]), st.integers(0, 5_000))
def test_whole_number_is_cut_to_its_bits(number: int, bits: int, zeros: int) -> None:
    text = f"{'-' if number < 0 else ''}{'0' * zeros}{abs(number)}"
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    fits = least <= number <= most
    assert read_int(text, bits=bits) == (max(least, min(number, most)), fits)
    assert parse_int(text, bits) == (number if fits else None)


@given(st.floats())
def test_fraction_comes_back_from_its_text(number: float) -> None:
    for text in (repr(number), number.hex()):
        assert parse_float(text) == number or math.isnan(number)


@pytest.mark.parametrize(("text", "before", "now"), [(" 7", 7.0, 0.0), ("0x1p4", 0.0, 16.0), ("1_0", 10.0, 10.0)])
def test_rule_before_version_6_reads_as_python(text: str, before: float, now: float) -> None:
    assert (value_of(text, as_python=True), value_of(text)) == (before, now)
