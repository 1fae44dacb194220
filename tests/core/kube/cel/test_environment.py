"""What Kubernetes' CEL environment makes of expressions: values after cel-go's and apiserver's own library tests."""

from __future__ import annotations

from typing import Any

import pytest

from docs.making import write_cel
from pumice.core.kube.cel.checking import Scope, check, compile_problem
from pumice.core.kube.cel.environment import LIBRARIES, STRINGS
from pumice.core.kube.cel.evaluating import evaluate
from pumice.core.kube.cel.reading import QUALIFIED, ExpressionError, read_expression
from pumice.core.kube.cel.scopes import DEVICE, of_request
from pumice.core.kube.cel.types import BOOL, DYN, CelType, signature, type_named

SCOPE = Scope({"x": DYN, "ints": type_named("list<int>"), "texts": type_named("map<string, string>")})
NAMES: dict[str, Any] = {"x": {"a": 1, "b": None, "d": 1.5, "l": [1, 2]}, "ints": [3, 1, 2], "texts": {"k": "v"}}

TRUE = [
    # literals: raw and triple-quoted strings, bytes, escapes, numbers, comments
    r"""r'\d' == '\\d' && R"\n".size() == 2""",
    '"""a\n"b" \'c\'""" == "a\\n\\"b\\" \'c\'"',
    "'''it's''' == \"it's\" && r'''\\''' == '\\\\' && r\"\"\"^[a-z]+$\"\"\" == '^[a-z]+$'",
    r"'\a\b\f\n\r\t\v\\\?\"\'\`'.size() == 12",
    r"'\x41\u0041\U00000041\101' == 'AAAA' && '\u00e9' == 'é' && '\U0001F600'.size() == 1",
    r"b'\xff\377'.size() == 2 && b'é' == b'\xc3\xa9' && br'\x41'.size() == 4 && bytes('é').size() == 2",
    "string(b'abc') == 'abc' && b'a' < b'b' && b'a' + b'b' == b'ab'",
    "0x1F == 31 && -0x1f == -31 && 1e3 == 1000.0 && .5 == 0.5 && 1.5e-2 == 0.015 && 0x10u == 16u",
    "-9223372036854775808 < 9223372036854775807 && 18446744073709551615u > 0u",
    "1 + 1 // a comment\n == 2",
    "[1, 2,] == [1, 2] && {'a': 1,} == {'a': 1} && .ints == ints",
    # numbers of different types
    "1 < 2.5 && 1u < 2 && 2.5 > 2u && -1 < 0u && 1 <= 1.0 && 2u >= 2",
    "dyn(1) == 1.0 && dyn(1u) == 1 && dyn(1) != 'a' && dyn(true) != 1 && !(dyn(1) == dyn(true))",
    "dyn(1) in [1.0, 2.0] && !(dyn(true) in [1]) && {1: 'a'}[dyn(1.0)] == 'a' && {1: 'a'}[dyn(1u)] == 'a'",
    "7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1 && 7u / 2u == 3u && 7u % 4u == 3u && 1.0 / 0.0 > 1.0",
    "int(2.9) == 2 && int(-2.9) == -2 && uint(2.9) == 2u && double(3) == 3.0 && int('-12') == -12",
    "string(1.5) == '1.5' && string(1e21) == '1e+21' && string(-12300.0) == '-12300' && string(7u) == '7'",
    "bool('true') && bool('T') && !bool('0') && string(true) == 'true' && string(3) == '3'",
    # types
    "type(1) == int && type(1u) == uint && type('') == string && type(b'') == bytes && type(null) == null_type",
    "type([]) == list && type({}) == map && type(1.0) == double && type(int) == type && type(true) == bool",
    "type(timestamp('2020-01-01T00:00:00Z')) == google.protobuf.Timestamp",
    "type(duration('1s')) == google.protobuf.Duration && type(ip('::1')) == net.IP",
    # strings
    "'hello'.charAt(4) == 'o' && 'hello'.charAt(5) == '' && 'tacocat'.indexOf('a', 2) == 5",
    "'tacocat'.indexOf('none') == -1 && 'tacocat'.indexOf('') == 0 && 'tacocat'.lastIndexOf('at') == 5",
    "'ta©o©αT'.lastIndexOf('©') == 4 && 'ta©o©αT'.lastIndexOf('©', 3) == 2 && 'ta©o©αT'.substring(3, 6) == 'o©α'",
    "'TacoCÆt'.lowerAscii() == 'tacocÆt' && 'tacoCαt'.upperAscii() == 'TACOCαT'",
    "'12 days 12 hours'.replace('12', '24', 1) == '24 days 12 hours' && 'ab'.replace('', '-') == '-a-b-'",
    "'hello hello hello'.split(' ', 2) == ['hello', 'hello hello'] && 'ab'.split('') == ['a', 'b']",
    "'hello'.split('l', 0) == [] && 'hello'.split('l', 1) == ['hello'] && ' \\t a\\u2003 '.trim() == 'a'",
    "['x', 'y'].join() == 'xy' && ['x', 'y'].join('-') == 'x-y' && [].join('-') == ''",
    r"""strings.quote("a\n\"b\" \\") == "\"a\\n\\\"b\\\" \\\\\"" """,
    "'a' < 'b' && 'abc'.contains('b') && 'abc'.startsWith('ab') && 'abc'.endsWith('bc') && size('π') == 1",
    # formats
    "'%s %d %s %s'.format(['a', 1, true, null]) == 'a 1 true null' && '100%%'.format([]) == '100%'",
    "'%.3f'.format([1.2345]) == '1.234' && '%f'.format([1234.5]) == '1,234.500000'",
    "'%.6e'.format([1052.032911275]) == '1.052033\\u00d710\\u2070\\u00b3'",
    "'%b %b %b'.format([5, -5, true]) == '101 -101 1' && '%o'.format([11]) == '13'",
    "'%x %X %x %X'.format([30, 30, 'hi', b'hi']) == '1e 1E 6869 6869'",
    "'%s'.format([['a', 3.14, null, [1], b'x']]) == '[\"a\", 3.140000, null, [1], b\"x\"]'",
    "'%s'.format([{'b': duration('2h'), 'a': timestamp(0)}]).startsWith('{\"a\":timestamp(\"1970-')",
    "'%s'.format([{'b': duration('2h'), 'a': 1}]) == '{\"a\":1, \"b\":duration(\"7200s\")}'",
    "'%s %s %s'.format([type('a'), 1.5, duration('1h45m47s')]) == 'string 1.5 6347s'",
    "'%f %f'.format(['NaN', 'Infinity']) == 'NaN ∞'",
    # regular expressions
    "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]') == '' && 'a1'.matches('^a\\\\d$')",
    "'123 abc 456'.findAll('[0-9]+') == ['123', '456'] && '1 2 3'.findAll('[0-9]', 2) == ['1', '2']",
    "'abc'.findAll('x') == [] && 'baac'.findAll('a*') == ['', 'aa', ''] && 'é1'.findAll('') == ['', '', '']",
    "matches('abc', 'b')",
    # durations and timestamps
    "duration('1h30m') == duration('90m') && duration('-1.5s') < duration('0') && duration('1us') > duration('1ns')",
    "duration('3730s').getHours() == 1 && duration('3730s').getMinutes() == 62 && duration('1.5s').getSeconds() == 1",
    "duration('1.5s').getMilliseconds() == 1500 && string(duration('1h')) == '3600s'",
    "int(duration('1s')) == 1000000000",
    "timestamp('2023-07-14T10:30:45.123Z').getFullYear() == 2023 && timestamp('2023-07-14T10:30:45Z').getMonth() == 6",
    "timestamp('2023-07-14T10:30:45Z').getDate() == 14 && timestamp('2023-07-14T10:30:45Z').getDayOfMonth() == 13",
    "timestamp('2023-07-14T10:30:45Z').getDayOfWeek() == 5 && timestamp('2023-07-16T00:00:00Z').getDayOfWeek() == 0",
    "timestamp('2023-01-02T00:00:00Z').getDayOfYear() == 1",
    "timestamp('2023-07-14T10:30:45.123Z').getMilliseconds() == 123",
    "timestamp('2023-01-01T05:30:00Z').getFullYear('-08:00') == 2022",
    "timestamp('2023-01-01T05:00:00Z').getDayOfYear('America/Los_Angeles') == 364",
    "timestamp('2023-07-14T10:30:45Z').getHours('America/Los_Angeles') == 3",
    "timestamp('2023-07-14T10:30:45Z').getMinutes('+05:45') == 15",
    "timestamp('2020-02-28T00:00:00Z') + duration('24h') == timestamp('2020-02-29T00:00:00Z')",
    "timestamp('2020-01-02T00:00:00Z') - timestamp('2020-01-01T00:00:00Z') == duration('24h')",
    "timestamp('2020-01-01T01:00:00+01:00') == timestamp('2020-01-01T00:00:00Z') && timestamp(0) < timestamp(1)",
    "string(timestamp('2020-01-01T01:00:00.5+01:00')) == '2020-01-01T01:00:00.5+01:00'",
    "int(timestamp('1970-01-01T00:00:01Z')) == 1 && string(timestamp(0)) == '1970-01-01T00:00:00Z'",
    # lists and sets
    "[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b'] && [true, false].sort() == [false, true]",
    "['foo', 'bar', 'baz'].sortBy(e, e.charAt(2)) == ['foo', 'bar', 'baz'].sortBy(e, e.charAt(2))",
    "[{'n': 2}, {'n': 1}].sortBy(e, e.n)[0].n == 1 && lists.range(3) == [0, 1, 2] && lists.range(0) == []",
    "[1, 2, 3, 4].slice(1, 3) == [2, 3] && [].slice(0, 0) == [] && [1, 2, 3].reverse() == [3, 2, 1]",
    "[[1, 2], [3]].flatten() == [1, 2, 3] && [dyn(1), dyn([2, 3])].flatten(2) == [1, 2, 3]",
    "[1, 2, 2, 3, 1].distinct() == [1, 2, 3] && [dyn(1), dyn(1.0), dyn('a')].distinct().size() == 2",
    "[1, 2, 3].isSorted() && !['b', 'a'].isSorted() && [1, 3].sum() == 4 && [1.5, 0.5].sum() == 2.0",
    "ints.sum() == 6",
    "[duration('1m'), duration('1s')].sum() == duration('61s') && [1, 3].min() == 1 && ['a', 'c'].max() == 'c'",
    "[1, 2, 2].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2 && ['a'].indexOf('b') == -1",
    "sets.contains([1, 2, 3], [2]) && sets.contains([1], []) && !sets.contains([], [1])",
    "sets.equivalent([1], [1, 1])",
    "sets.intersects([1], [1, 2]) && !sets.intersects([1], []) && sets.equivalent([1, 2], [2, 1])",
    "[1, 2] + [3] == [1, 2, 3] && 2 in [1, 2] && 'k' in texts && ints[0] == 3 && [1, 2].first().value() == 1",
    "[1, 2].last().orValue(0) == 2 && [].first().orValue(7) == 7 && texts.k == 'v' && texts['k'] == 'v'",
    # macros
    "[1, 2].all(i, v, i < v) && [1, 2].exists(i, v, i == 1 && v == 2) && [3, 3].existsOne(i, v, i == 0)",
    "{'a': 1}.all(k, v, k == 'a' && v == 1) && {'a': 1, 'b': 2}.exists(k, v, v == 2) && [1, 2].exists_one(v, v == 2)",
    "[1, 2].transformList(i, v, i * v) == [0, 2] && [1, 2, 3].transformList(i, v, v > 1, v * 2) == [4, 6]",
    "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2} && {'a': 1, 'b': 2}.transformMap(k, v, v > 1, v) == {'b': 2}",
    "{'a': 'x'}.transformMapEntry(k, v, {v: k}) == {'x': 'a'} && [5].transformMapEntry(i, v, {v: i}) == {5: 0}",
    "[1, 2, 3].map(v, v > 1, v * v) == [4, 9] && [[1, 2], [3]].map(l, l.map(v, v + 1)) == [[2, 3], [4]]",
    "[1, 2, 3].filter(v, v != 2) == [1, 3] && {'a': 1}.map(k, k) == ['a']",
    # optional values
    "optional.of(1).hasValue() && !optional.none().hasValue() && optional.ofNonZeroValue('').orValue('z') == 'z'",
    "x.?a.orValue(0) == 1 && x.?none.orValue(5) == 5 && x.?none.?deeper.orValue(7) == 7 && x[?'a'].hasValue()",
    "[1, 2][?5].orValue(9) == 9 && {'k': [1]}[?'k'][0].value() == 1 && x.?l[1].orValue(0) == 2",
    "x.?a.optMap(v, v + 1).orValue(0) == 2 && !x.?none.optMap(v, v + 1).hasValue()",
    "x.?l.optFlatMap(l, l[?0]).value() == 1 && optional.none().or(optional.of(2)).value() == 2",
    "[?x.?none, x.a] == [1] && {?'a': x.?none, 'b': x.a} == {'b': 1} && {?'a': x.?a} == {'a': 1}",
    "optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(1)].unwrapOpt() == [1]",
    "optional.of(1) == optional.of(1) && optional.of(1) != optional.none()",
    "optional.of(1).or(x.none.y).value() == 1",
    # null, absence, errors that do not matter
    "x.b == null && has(x.a) && !has(x.none) && !has(x.b.c) && x != null",
    "(x.none == 1 || true) && !(false && x.none == 1)",
    "true ? true : x.none == 1",
    # quantities
    "isQuantity('1.3Gi') && isQuantity('10000k') && !isQuantity('200K') && isQuantity('Mi') && !isQuantity('1,3G')",
    "quantity('200M') == quantity('0.2G') && quantity('50M').isLessThan(quantity('50Mi'))",
    "quantity('50k').add(quantity('20k')) == quantity('70k') && quantity('50k').add(20) == quantity('50020')",
    "quantity('50k').sub(20000) == quantity('30k')",
    "quantity('50k').sub(quantity('60k')).compareTo(quantity('0')) == -1",
    "quantity('50k').add(20).sub(quantity('100k')).sub(-50000) == quantity('20') && sign(quantity('-1')) == -1",
    "quantity('50k').isInteger() && quantity('50k').asInteger() == 50000 && !quantity('1500m').isInteger()",
    "!quantity('9999999999999999999999999999999999999G').isInteger() && quantity('1.5').asApproximateFloat() == 1.5",
    # semantic versions
    "isSemver('1.2.3-beta.1+build.1') && !isSemver('v1.0') && isSemver('v1.0', true) && !isSemver('1.02.0')",
    "semver('01.01.01', true) == semver('1.1.1') && semver('1.2.3').major() == 1 && semver('1.2.3').patch() == 3",
    "semver('1.0.0-alpha').isLessThan(semver('1.0.0-alpha.1'))",
    "semver('1.0.0-rc.1').compareTo(semver('1.0.0')) == -1",
    "semver('1.0.0-2').isLessThan(semver('1.0.0-10')) && semver('1.0.0').isGreaterThan(semver('0.9.9'))",
    # URLs
    "isURL('https://user:pass@example.com:80/path?query=val#fragment') && isURL('/absolute-path')",
    "!isURL('https://a:b:c/') && !isURL('../relative-path') && !isURL('') && isURL('mailto:a@b')",
    "url('https://example.com:80/').getHost() == 'example.com:80' && url('https://[::1]:80/').getHostname() == '::1'",
    "url('https://[::1]/').getHost() == '[::1]' && url('https://example.com:80/').getPort() == '80'",
    "url('/path').getScheme() == '' && url('HTTPS://example.com/').getScheme() == 'https'",
    "url('https://example.com/path with spaces/').getEscapedPath() == '/path%20with%20spaces/'",
    "url('https://example.com').getEscapedPath() == '' && url('/path').getPort() == ''",
    "url('https://example.com/path?k1=a&k2=b&k2=c').getQuery() == {'k1': ['a'], 'k2': ['b', 'c']}",
    "url('https://example.com/path?key with spaces=a b').getQuery() == {'key with spaces': ['a b']}",
    "url('https://example.com/path?').getQuery() == {}",
    # addresses and networks
    "isIP('127.0.0.1') && isIP('::1') && !isIP('127.0.0.256') && !isIP(':::1') && !isIP('01.2.3.4')",
    "!isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0') && ip.isCanonical('2001:db8::abcd')",
    "!ip.isCanonical('2001:DB8::ABCD') && !ip.isCanonical('2001:db8::0:0:0:abcd') && ip('::1').family() == 6",
    "ip('0.0.0.0').isUnspecified() && ip('::1').isLoopback() && ip('224.0.0.1').isLinkLocalMulticast()",
    "!ip('224.0.1.1').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast()",
    "ip('fe80::1').isLinkLocalUnicast()",
    "ip('192.168.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()",
    "!ip('ff00::1').isGlobalUnicast()",
    "string(ip('2001:DB8::1')) == '2001:db8::1' && ip('::1') == ip('0:0:0:0:0:0:0:1')",
    "isCIDR('192.168.0.0/16') && isCIDR('192.168.0.1/16') && !isCIDR('192.168.0.0/33') && !isCIDR('::1/129')",
    "!isCIDR('10.0.0.0/08') && !isCIDR('::ffff:1.2.3.4/24') && cidr('::1/128').prefixLength() == 128",
    "cidr('192.168.0.0/24').containsIP('192.168.0.1') && !cidr('192.168.0.0/24').containsIP(ip('192.168.1.1'))",
    "cidr('192.168.0.0/16').containsCIDR('192.168.10.0/24') && !cidr('10.0.0.0/8').containsCIDR(cidr('0.0.0.0/0'))",
    "cidr('192.168.0.1/24').masked() == cidr('192.168.0.0/24') && cidr('192.168.0.1/24').ip() == ip('192.168.0.1')",
    "string(cidr('192.168.0.1/24')) == '192.168.0.1/24' && !cidr('::/0').containsIP('1.2.3.4')",
    # named formats
    "!format.dns1123Label().validate('my-label-name').hasValue()",
    "format.dns1123Label().validate('a.b').value() == ['must not contain dots']",
    "format.dns1123Label().validate('contains a space').value()[0].startsWith('a lowercase RFC 1123 label must')",
    "!format.qualifiedName().validate('apiextensions.k8s.io/v1beta1').hasValue()",
    "!format.labelValue().validate('').hasValue()",
    "format.qualifiedName().validate('/a').value() == ['prefix part must be non-empty']",
    "!format.dns1123LabelPrefix().validate('my-label-prefix-').hasValue()",
    "format.dns1035Label().validate('1a').hasValue()",
    "!format.uri().validate('http://example.com').hasValue() && format.uri().validate('x y').hasValue()",
    "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
    "format.uuid().validate('1').hasValue()",
    "!format.byte().validate('aGVsbG8=').hasValue()",
    "format.byte().validate('aGVsbG8').value() == ['invalid base64']",
    "!format.date().validate('2021-01-01').hasValue()",
    "format.date().validate('2020-01-32').value() == ['invalid date']",
    "!format.datetime().validate('2020-01-01T00:00:00Z').hasValue()",
    "format.datetime().validate('2020-01-32T00:00:00Z').hasValue()",
    "format.named('uri').value() == format.uri() && format.uri() != format.uuid()",
    "!format.named('unknown').hasValue()",
    "format.dns1123Label().validate(lists.range(64).map(i, 'a').join()).value()[0].endsWith('than 63 characters')",
]


@pytest.mark.parametrize("text", TRUE)
def test_an_expression_that_holds_is_true_and_compiles(text: str) -> None:
    assert evaluate(read_expression(text), NAMES) is True
    checked = check(text, SCOPE)
    assert checked.kind == BOOL
    assert evaluate(checked.node, NAMES) is True


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("-9223372036854775808 - 1 < 0", "integer overflow"),
        ("9223372036854775807 * 2 > 0", "integer overflow"),
        ("-(-9223372036854775808) > 0", "integer overflow"),
        ("-9223372036854775808 / -1 > 0", "integer overflow"),
        ("0u - 1u > 0u", "unsigned integer overflow"),
        ("1 / 0 == 1", "division by zero"),
        ("1 % 0 == 1", "modulus by zero"),
        ("'ab'.charAt(3) == ''", "index out of range: 3"),
        ("'ab'.substring(2, 1) == ''", "invalid substring range"),
        ("'ab'.substring(3) == ''", "index out of range"),
        ("[1][5] == 1", "index out of bounds"),
        ("[1, 2].slice(0, 3) == []", "list is length 2"),
        ("[1].slice(-1, 1) == []", "negative indexes"),
        ("[].min() == 0", "min called on empty list"),
        ("ints.filter(v, v > 9).max() == 0", "max called on empty list"),
        ("[dyn(1), dyn('a')].sort() == []", "same type"),
        ("optional.none().value() == 1", "optional.none"),
        ("[1, 1].transformMapEntry(i, v, {v: i}) == {}", "repeated key"),
        ("quantity('x') == quantity('1')", "quantity"),
        ("quantity('9999999999999999999999G').asInteger() == 1", "cannot convert value to integer"),
        ("semver('1.0') == semver('1.0.0')", "not a semantic version"),
        ("url('https://a:b:c/').getHost() == ''", "invalid port|host"),
        ("ip('1.2.3') == ip('1.2.3.4')", "parse error"),
        ("cidr('10.0.0.0/33').prefixLength() == 33", "out of range"),
        ("timestamp(string(x.a)) == timestamp(0)", "cannot read '1' as a time"),
        ("duration(string(x.a)) == duration('0')", "invalid duration"),
        ("timestamp(0).getHours('Nowhere/Land') == 0", "unknown time zone"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1s') > timestamp(0)", "timestamp overflow"),
        ("int(string(x.d)) == 0", "type conversion error"),
        ("uint(-x.a) == 0u", "unsigned integer overflow"),
        ("bool(string(x.a + 1))", "type conversion error"),
        ("{'a': x.a, 'a': x.d}.size() == 1", "repeated key"),
        ("0.0 / 0.0 < 1.0", "NaN values cannot be ordered"),
        ("x.a + 'b' == ''", "no such overload"),
        ("x.a.startsWith('b')", "no such overload"),
        ("x.a < 'b'", "no such overload"),
        ("x.d / x.a == 1.0", "no such overload"),
        ("x.a.all(v, v)", "no such overload"),
        ("'%d'.format([x.d]) == ''", "decimal clause can only be used on integers"),
        ("'%s'.format(x.l.filter(v, v > 5)) == ''", "index 0 out of range"),
        ("'a'.matches(x.l[0] == 1 ? '(' : 'a')", "missing"),
    ],
)
def test_an_expression_without_a_value_says_why(text: str, complaint: str) -> None:
    assert compile_problem(text, SCOPE, BOOL) == ""
    with pytest.raises(ExpressionError, match=complaint):
        evaluate(read_expression(text), NAMES)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("uint(-1) == 0u", "overflow"),
        ("int(1e30) == 0", "integer overflow"),
        ("int('x') == 0", "type conversion error"),
        ("bool('yes')", "type conversion error"),
        ("timestamp(253402300800) > timestamp(0)", "timestamp overflow"),
        ("[x.a, 1].size() == 2", "different types"),
        ("-duration('1s') < duration('0')", "no matching overload for '-_'"),
        ("[1].existsOne(v, true)", "undeclared reference"),
        ("has(x.?a)", "has\\(\\) takes one field"),
        ("1e309 > 0.0", "does not fit a double"),
        ("y == 1", "undeclared reference to 'y'"),
        ("x.foo()", "undeclared reference to 'foo'"),
        ("nothing()", "undeclared reference to 'nothing'"),
        ("base64.encode(b'a') == ''", "undeclared reference"),
        ("math.greatest(1, 2) == 2", "undeclared reference"),
        ("'abc'.reverse() == 'cba'", "no matching overload for 'reverse'"),
        ("size(1, 2) == 1", "no matching overload for 'size' applied to '\\(int, int\\)'"),
        ("'a'.startsWith() == true", "no matching overload for 'startsWith'"),
        ("'a' + 1 == 'a1'", "no matching overload for '_\\+_' applied to '\\(string, int\\)'"),
        ("1 == 1.0", "no matching overload for '_==_'"),
        ("1 == 'a'", "no matching overload"),
        ("1 + 1u == 2", "no matching overload"),
        ("!1", "no matching overload for '!_'"),
        ("1 in ['a']", "no matching overload for '@in'"),
        ("ints['a'] == 1", "no matching overload for '_\\[_\\]'"),
        ("ints.foo == 1", "does not support field selection"),
        ("1 && true", "no matching overload for '_&&_'"),
        ("true ? 1 : 'a'", "no matching overload for '_\\?_:_'"),
        ("[1, 'a'].size() == 2", "different types"),
        ("{'a': 1, 'b': 'c'}.size() == 2", "different types"),
        ("ints.all(v, v)", "expected type 'bool'"),
        ("'abc'.all(v, true)", "cannot be range of a comprehension"),
        ("[1].all(v, w)", "undeclared reference to 'w'"),
        ("has(x)", "has\\(\\) takes one field"),
        ("[1].all(v.w, true)", "simple name"),
        ("[1].all(v, v, true)", "named twice"),
        ("[1].all(1)", "undeclared reference to 'all'"),
        ("for == 1", "reserved word"),
        ("namespace == 'a'", "reserved word"),
        ("duration('1 fortnight') == duration('1s')", "invalid duration"),
        ("timestamp('yesterday') == timestamp(0)", "as a time"),
        ("'a'.matches('(')", "invalid matches argument"),
        ("'a'.find('[') == ''", "invalid find argument"),
        ("'%d'.format(['a']) == ''", "decimal clause"),
        ("'%d'.format([1, 2]) == ''", "too many arguments"),
        ("'%d %d'.format([1]) == ''", "out of range"),
        ("'%y'.format([1]) == ''", "unrecognized formatting clause"),
        ("cel.bind(a, 1, a == 1)", "undeclared reference to 'cel'"),
        ("Object{a: 1} == x", "undeclared reference to 'Object'"),
        ("jsonpatch.escapeKey('a') == 'a'", "undeclared reference"),
        ("authorizer.group('').resource('pods').check('get').allowed()", "undeclared reference to 'authorizer'"),
        ("1 + 1", "must evaluate to bool"),
        ("x.a", "must evaluate to bool"),
        (r"'\q' == ''", "not a valid escape"),
        (r"'\ud800' == ''", "not a valid escape"),
        (r"b'\u0041' == b''", "not known in bytes"),
        ("'a\nb' == ''", "cannot read"),
        ("99999999999999999999 > 0", "does not fit 64 bits"),
        ("f(1,) == 1", "was not expected"),
        ("x.`a-b` == 1", "cannot read"),
    ],
)
def test_a_wrong_expression_is_refused_when_it_is_compiled(text: str, complaint: str) -> None:
    problem = compile_problem(text, SCOPE, BOOL)
    with pytest.raises(AssertionError, match=complaint):
        raise AssertionError(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("object.spec.x == 1 && has(oldObject.spec) && request.operation == 'CREATE'", ""),
        ("request.userInfo.groups.exists(g, g == 'a') && request.userInfo.extra['k'].size() > 0", ""),
        (
            "namespaceObject.metadata.labels['a'] == 'b' && namespaceObject.metadata.creationTimestamp < timestamp(0)",
            "",
        ),
        ("authorizer.group('apps').resource('deployments').namespace('a').name('b').check('get').allowed()", ""),
        ("authorizer.serviceAccount('a', 'b').path('/healthz').check('get').reason() == ''", ""),
        ("authorizer.requestResource.subresource('status').check('update').errored()", ""),
        ("request.nothing == 1", "undefined field 'nothing'"),
        ("namespaceObject.spec.nothing == 1", "undefined field"),
        ("params.a == 1", "undeclared reference to 'params'"),
        ("variables.a == 1", "undeclared reference to 'variables'"),
        ("authorizer.resource('pods').check('get').allowed()", "no matching overload for 'resource'"),
        ("authorizer.group('').check('get').allowed()", "no matching overload for 'check'"),
    ],
)
def test_a_policy_may_speak_of_the_request_and_of_nothing_else(text: str, problem: str) -> None:
    found = compile_problem(text, of_request(), BOOL)
    assert problem in found
    assert bool(problem) == bool(found)


def test_a_device_selector_may_bind_and_speaks_of_devices_only() -> None:
    good = "cel.bind(a, device.attributes['d'], a.x && device.capacity['d'].m.compareTo(quantity('1')) >= 0)"
    assert compile_problem(good, DEVICE, BOOL, DYN) == ""
    assert "undefined field 'name'" in compile_problem("device.name == ''", DEVICE, BOOL, DYN)
    assert "undeclared reference to 'object'" in compile_problem("object == null", DEVICE, BOOL, DYN)


def test_fields_are_escaped_as_in_kubernetes() -> None:
    value = {"self": {"a-b": 1, "a.b": 2, "a/b": 3, "namespace": 4, "a__b": 5}}
    text = "self.a__dash__b == 1 && self.a__dot__b == 2 && self.a__slash__b == 3 && self.__namespace__ == 4"
    assert evaluate(read_expression(text), value) is True
    assert evaluate(read_expression("self.a__underscores__b == 5 && has(self.a__dash__b)"), value) is True


def test_every_function_with_a_dot_in_its_name_is_read_as_one() -> None:
    names = {signature(text).name for library in LIBRARIES.values() for text in library if not signature(text).method}
    assert {name for name in names if "." in name} == QUALIFIED


def test_the_environment_is_that_of_kubernetes() -> None:
    """Strings of version 2: no reverse; lists of version 3; no mathematics and no encoders."""
    names = {signature(text).name for library in LIBRARIES.values() for text in library}
    assert {"distinct", "flatten", "lists.range", "reverse", "slice", "sort"} <= names
    assert not {"math.greatest", "base64.encode", "regex.replace", "cel.bind"} & names
    assert "(string).reverse() -> string" not in STRINGS
    assert type_named("map<string, list<A>>") == CelType("map", (CelType("string"), CelType("list", (CelType("A"),))))


def test_the_page_lists_the_functions_there_are() -> None:
    assert write_cel.PAGE.read_text(encoding="utf-8") == write_cel.page()
