"""YAML to plain data: the same data as PyYAML, with lines, and with Kubernetes' idea of scalars."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pumice.load.documents import DocumentError, read_documents

TEXT = st.text(st.characters(codec="ascii", categories=("L", "P", "Z", "S")), max_size=12)  # 0E0 is no text to Go
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, width=32) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def only(text: str) -> Any:
    """The value of the one document."""
    (document,) = read_documents(text)
    return document.value


@given(PLAIN)
def test_what_pyyaml_dumps_comes_back(value: Any) -> None:
    assert only(yaml.safe_dump(value)) == value


@given(st.lists(st.dictionaries(TEXT, PLAIN, min_size=1, max_size=3), min_size=1, max_size=4))
def test_documents_are_numbered_and_start_where_they_start(values: list[dict[str, Any]]) -> None:
    text = yaml.safe_dump_all(values, explicit_start=True, default_flow_style=False)
    documents = list(read_documents(text))
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
        (".5", 0.5),
        (".inf", float("inf")),
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


def test_items_have_lines() -> None:
    (document,) = read_documents("kind: List\nitems:\n- a: 1\n\n- b: [x,\n    y]\n- c\n")
    assert document.item_lines == [3, 5, 7]


def test_keys_are_texts() -> None:
    assert only("1: a\ntrue: b\nnull: c") == {"1": "a", "true": "b", "null": "c"}


@pytest.mark.parametrize(
    ("text", "line", "document", "words"),
    [
        ("a: [1,\nb: 2", 3, 1, "malformed YAML"),
        ("ok: 1\n---\na: b: c\n", 3, 2, "malformed YAML"),
        ("a: 1\nb: 2\na: 3", 3, 1, "'a' is given twice"),
        ("a: \x01", 1, 1, "malformed YAML"),
        ("a: *nowhere", 1, 1, "no anchor"),
        ("a: !!binary aGk=", 1, 1, "not supported"),
        ("a: !mine {b: 1}", 1, 1, "not supported"),
        ("? [a]\n: b", 1, 1, "expected a text as key"),
        ("a: {<<: 1}", 1, 1, "expected a mapping to merge"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_document(text: str, line: int, document: int, words: str) -> None:
    with pytest.raises(DocumentError, match=words) as caught:
        list(read_documents(text))
    assert (caught.value.line, caught.value.document) == (line, document)


def test_documents_before_a_bad_one_are_given() -> None:
    documents = read_documents("a: 1\n---\nb: [")
    assert next(documents).value == {"a": 1}
    with pytest.raises(DocumentError):
        next(documents)
