"""YAML to plain data: the same data as PyYAML, with lines, and with Kubernetes' idea of scalars."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.load.documents import DEEPEST, DocumentError, ManifestDocument, read_documents
from pumice.yaml_text import dump_yaml

TEXT = st.text(st.characters(codec="ascii", categories=("L", "P", "Z", "S")), max_size=12)  # 0E0 is no text to Go
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(-1e9, 1e9, width=32) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def only(text: str) -> Any:
    """The value of the one document."""
    (document,) = whole(text)
    return document.value


def whole(text: str) -> list[ManifestDocument]:
    """The documents of a text in which none is bad."""
    documents = list(read_documents(text))
    assert all(isinstance(document, ManifestDocument) for document in documents), documents
    return [document for document in documents if isinstance(document, ManifestDocument)]


@given(PLAIN)
def test_what_pumice_dumps_comes_back(value: Any) -> None:
    assert only(dump_yaml(value)) == value


@given(st.lists(st.dictionaries(TEXT, PLAIN, min_size=1, max_size=3), min_size=1, max_size=4))
def test_documents_are_numbered_and_start_where_they_start(values: list[dict[str, Any]]) -> None:
    text = "".join(f"---\n{dump_yaml(value)}" for value in values)
    documents = whole(text)
    assert [document.value for document in documents] == values
    assert [document.number for document in documents] == list(range(1, len(values) + 1))
    starts = [number for number, line in enumerate(text.splitlines(), start=1) if line.startswith("---")]
    assert all(document.line - start in (0, 1) for document, start in zip(documents, starts, strict=False))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),  # a text, as Kubernetes keeps it
        ("2020-01-01", "2020-01-01"),
        ("1:30", "1:30"),  # no sexagesimals
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("", None),
        ("010", 8),
        ("0x1F", 31),
        ("0o17", 15),
        ("-0b11", -3),
        ("1_000", 1000),
        ("1e3", 1000.0),
        ("18446744073709551615", 1.8446744073709552e19),
        ("18446744073709551616", 1.8446744073709552e19),  # a fraction, as in Go
        ("-9223372036854775809", -9.223372036854775808e18),
        ("0x1ffffffffffffffff", "0x1ffffffffffffffff"),
        ("9" * 5000, "9" * 5000),
        ("1e400", "1e400"),
        (".5", 0.5),
        ("y", True),
        ("N", False),
        ("08", 8),
        ("1.0", 1),
        ("0X1f", 31),
        ("0B11", 3),
        ("1._5", 1.5),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1e21", 1e21),
        ("!!binary aGk=", "hi"),
        ("!mine 5", "5"),
        ("!!float 5", 5),
        ("!!null ''", None),
        ("500m", "500m"),
        ("1Gi", "1Gi"),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("- - a", [["a"]]),
    ],
)
def test_scalars(text: str, value: Any) -> None:
    assert only(f"a: {text}" if not text.startswith("-") or text == "-0b11" else text) in ({"a": value}, value)


def test_anchors_and_merge_keys() -> None:
    value = only("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\ne: [*x, *x]\n")
    assert value == {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}, "e": [{"b": 1, "c": 2}] * 2}
    assert only("a: {'<<': 1}\nb: {\"<<\": {c: 2}}") == {"a": {"<<": 1}, "b": {"<<": {"c": 2}}}


def test_items_have_lines() -> None:
    (document,) = whole("kind: List\nitems:\n- a: 1\n\n- b: [x,\n    y]\n- c\n")
    assert document.item_lines == [3, 5, 7]


def test_keys_are_texts() -> None:
    assert only("1: a\nyes: b\n0x10: c\n1.5: d\n1e3: e") == {"1": "a", "true": "b", "16": "c", "1.5": "d", "1000": "e"}


def test_a_key_given_twice_is_remarked_on_and_the_last_one_counts() -> None:
    (document,) = whole("a: 1\nb: &x {c: 1, c: 2}\nd: {<<: *x, c: 3}\na: 2\n")
    assert document.value == {"a": 2, "b": {"c": 2}, "d": {"c": 3}}
    assert document.remarks == [
        (2, "the key 'c' is given twice; the last one counts"),
        (4, "the key 'a' is given twice; the last one counts"),
    ]
    (document,) = whole("a: 1\n<<: {a: 2}\na: 3\n")  # a merge key between them changes nothing
    assert document.remarks == [(3, "the key 'a' is given twice; the last one counts")]


def test_an_alias_may_be_a_key() -> None:
    assert only("a: &a 010\n*a : b") == {"a": 8, "8": "b"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\n<<: {a: 2, b: 3}", {"a": 2, "b": 3}),
        ("<<: {a: 2}\na: 1", {"a": 1}),
        ("<<: [{a: 1}, {a: 2, b: 1}]", {"a": 1, "b": 1}),
        ("<<: {a: 1}\n<<: {a: 2}", {"a": 2}),
        ("x: &x {a: 1}\nz: {b: 2, <<: [*x, {a: 5, c: 3}]}", {"x": {"a": 1}, "z": {"b": 2, "a": 1, "c": 3}}),
    ],
)
def test_merge_keys_apply_where_they_stand(text: str, value: Any) -> None:
    assert only(text) == value


def test_a_byte_order_mark_begins_any_document() -> None:
    documents = whole("\ufeffa: 1\n---\n\ufeffb: 2\n\ufeff---\nc: 3\n")
    assert [document.value for document in documents] == [{"a": 1}, {"b": 2}, {"c": 3}]


@pytest.mark.parametrize(
    ("text", "line", "document", "words"),
    [
        ("a: [1,\nb: 2", 3, 1, "malformed YAML"),
        ("ok: 1\n---\na: b: c\n", 3, 2, "malformed YAML"),
        ("a: 1\nnull: 2", 2, 1, "a null is not a key"),
        ("a: .inf", 1, 1, "JSON has no number inf"),
        ("a: !!int x", 1, 1, "'x' is not a int"),
        ("a: \x01", 1, 1, "malformed YAML"),
        ("a: *nowhere", 1, 1, "no anchor"),
        ("a: !!binary a", 1, 1, "not valid base64"),
        ("? [a]\n: b", 1, 1, "expected a text as key"),
        ("a: {<<: 1}", 1, 1, "expected a mapping to merge"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_document(text: str, line: int, document: int, words: str) -> None:
    (error,) = (found for found in read_documents(text) if isinstance(found, DocumentError))
    assert words in error.problem
    assert (error.line, error.document) == (line, document)


def test_documents_before_and_after_a_bad_one_are_given() -> None:
    found = list(read_documents("a: 1\n---\nb: [\n---\nc: 2\n--- }\n---\nd: 3\nnull: 4\n--- {e: 5}\n"))
    shown = [one.value if isinstance(one, ManifestDocument) else (one.document, one.line) for one in found]
    assert shown == [{"a": 1}, (2, 4), {"c": 2}, (4, 6), (5, 9), {"e": 5}]
    assert [one.line for one in found if isinstance(one, ManifestDocument)] == [1, 5, 10]
    assert [one.number for one in found if isinstance(one, ManifestDocument)] == [1, 3, 6]


def nested(levels: int) -> str:
    return f"a: {'[' * (levels - 1)}{']' * (levels - 1)}"


def test_a_thousand_levels_are_read_and_no_more() -> None:
    assert only(nested(DEEPEST))
    (error,) = list(read_documents(nested(DEEPEST + 1)))
    assert isinstance(error, DocumentError)
    assert error.problem == "malformed YAML: nested deeper than 1000 levels"
    assert (error.line, error.column) == (1, 3 + DEEPEST)


def aliases(levels: int, width: int = 10) -> str:
    """A list of `width` texts, one of so many of it, and so on: `width ** levels` texts."""
    lines = ["l0: &l0 [" + ",".join("x" * width) + "]"]
    lines += [f"l{at}: &l{at} [{','.join([f'*l{at - 1}'] * width)}]" for at in range(1, levels)]
    return "\n".join(lines)


def test_aliases_may_stand_for_a_million_values() -> None:
    assert len(only(aliases(5))["l4"]) == 10
    (error,) = list(read_documents(aliases(9)))
    assert isinstance(error, DocumentError)
    assert "more than 1000000 values" in error.problem
    assert error.line == 6


def test_an_alias_does_not_contain_itself() -> None:
    (error,) = list(read_documents("a: &a [1, {b: *a}]"))
    assert isinstance(error, DocumentError)
    assert error.problem == "the alias 'a' contains itself"
