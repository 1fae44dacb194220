"""Device selectors: what they read and what they come to."""

from typing import Any

import pytest

from pumice.core.kube.cel.evaluating import is_true
from pumice.core.kube.cel.quantities import Amount, Domains, Version
from pumice.core.kube.cel.reading import ExpressionError, read_expression
from pumice.core.quantity import parse_quantity

GPU = "gpu.example.com"
DEVICE: dict[str, Any] = {
    "driver": GPU,
    "attributes": Domains({GPU: {"healthy": True, "cores": 4, "model": "A100", "firmware": Version("1.2.3")}}),
    "capacity": Domains({GPU: {"memory": Amount(parse_quantity("10Gi"))}}),
}
ATTRIBUTES = f"device.attributes['{GPU}']"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("device.driver == 'gpu.example.com'", True),
        ('device.driver != "gpu.example.com"', False),
        (f"{ATTRIBUTES}.healthy", True),
        (f"!{ATTRIBUTES}.healthy || false", False),
        (f"{ATTRIBUTES}.cores >= 4 && {ATTRIBUTES}.cores < 5", True),
        (f"{ATTRIBUTES}.cores + 1 == 5", True),
        (f"{ATTRIBUTES}.cores * 3 - 2 == 10 && -7 / 2 == -3 && -7 % 2 == -1", True),
        ("7.0 / 2.0 == 3.5 && 2 + 3 * 4 == 14 && 10 - 2 - 3 == 5", True),
        (f"[1, 2].exists(n, n == {ATTRIBUTES}.cores) || [4].all(n, n == {ATTRIBUTES}.cores)", True),
        ("{'a': 1, 'b': 2}.exists(k, k == 'b') && {'a': 1}['a'] == 1", True),
        (r"r'\d' == '\\d' && 'a,b'.split(',').map(x, x + x).join('-') == 'aa-bb'", True),
        ("[3, 1].filter(x, x > 1) == [3] && [1, 1].exists_one(x, x == 1) == false", True),
        (f"{ATTRIBUTES}.cores in [1, 2, 4]", True),
        (f"{ATTRIBUTES}['model'].startsWith('A') && {ATTRIBUTES}.model.endsWith(\"00\")", True),
        (f"{ATTRIBUTES}.model.matches('^A[0-9]+$')", True),
        (f"{ATTRIBUTES}.model.contains('10') && {ATTRIBUTES}.model.lowerAscii() == 'a100'", True),
        ("'other.example.com' in device.attributes", False),
        ("'x' in device.attributes['other.example.com']", False),
        (f"has({ATTRIBUTES}.cores) && !has({ATTRIBUTES}.none)", True),
        (f"{ATTRIBUTES}.cores > 8 ? false : true", True),
        (f"device.capacity['{GPU}'].memory.compareTo(quantity('8Gi')) >= 0", True),
        (f"device.capacity['{GPU}'].memory.isLessThan(quantity('10240Mi'))", False),
        (f"{ATTRIBUTES}.firmware.isGreaterThan(semver('1.2.3-rc.1'))", True),
        (f"{ATTRIBUTES}.firmware.isLessThan(semver('1.10.0'))", True),
        ("-1 < 0 && (1 + 2 == 3)", True),
        ("true || device.none", True),
        ("device.none || true", True),
        ("false && device.none", False),
        ("1 == true", False),
        (f"{ATTRIBUTES}.?cores.orValue(0) == 4 && {ATTRIBUTES}.?none.orValue(7) == 7", True),
        ("device.?none.deeper['x'][0].orValue('') == '' && !device.?none.hasValue()", True),
        ("[['a']][?0][0].orValue('b') == 'a' && {'k': 1}[?'z'].or({'k': 1}[?'k']).value() == 1", True),
        ("size('abc') == 3 && 'a\\'b'.size() == 3", True),
    ],
)
def test_what_an_expression_comes_to(expression: str, value: bool) -> None:
    assert is_true(expression, DEVICE) is value


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ('device.attributes["some-driver"].healthy', "no such key: healthy"),
        ("device.none && true", "no such key: none"),
        (f"{ATTRIBUTES}.cores", "4 is neither true nor false"),
        (f"{ATTRIBUTES}.cores < 'x'", "no such overload"),
        ("quantity('x') == quantity('1')", "quantity"),
        ("semver('1') == semver('1')", "not a semantic version"),
        ("other == 1", "no such key: other"),
        ("nothing()", "unknown function 'nothing'"),
        ("[1][-1] == 1", "no such key"),
        ("device.?none", "neither true nor false"),
        ("device.?none.value()", "optional.none"),
        ("device.driver.orValue('')", "no such overload"),
        ("device.none.?deeper.orValue(true)", "no such key: none"),
    ],
)
def test_what_has_no_value(expression: str, complaint: str) -> None:
    with pytest.raises(ExpressionError, match=complaint):
        is_true(expression, DEVICE)


@pytest.mark.parametrize("expression", ["", "1 +", "(1", "a b", "device.", "#", "'open", "a ? b", "f(1 2)", "x.5"])
def test_what_cannot_be_read(expression: str) -> None:
    with pytest.raises(ExpressionError):
        read_expression(expression)


@pytest.mark.parametrize("opening", ["(", "[", "!", "-", "a[", "f(", "a ? b : ", "[(!"])
def test_nesting_is_bounded(opening: str) -> None:
    with pytest.raises(ExpressionError, match="nested deeper than"):
        read_expression(opening * 600)


@pytest.mark.parametrize("chain", ["1" + "+1" * 2_000, "a" + ".b" * 2_000, "a" + ".b()" * 2_000, "1" + "<1" * 2_000])
def test_so_is_what_becomes_deep(chain: str) -> None:
    with pytest.raises(ExpressionError, match="nested deeper than"):
        read_expression(chain)


def test_many_conditions_are_not_deep() -> None:
    assert is_true("true" + " && true" * 1_000, DEVICE)
    assert is_true("false" + " || false" * 1_000 + " || true", DEVICE)
    assert not is_true("true" + " && true" * 500 + " && false", DEVICE)


def test_length_and_numbers_are_bounded() -> None:
    with pytest.raises(ExpressionError, match="longer than 10240 letters"):
        read_expression(" " * 10_241)
    with pytest.raises(ExpressionError, match="does not fit 64 bits"):
        read_expression("9" * 5_000)
    with pytest.raises(ExpressionError, match="not a semantic version"):
        is_true(f"semver('{'1' * 5_000}.1.1') == semver('1.1.1')", DEVICE)


def test_matching_is_linear() -> None:
    assert not is_true(f"'{'a' * 5_000}!'.matches('^(a+)+$')", DEVICE)
    with pytest.raises(ExpressionError, match="matches: invalid perl operator"):
        is_true("'a'.matches('(?=a)')", DEVICE)
