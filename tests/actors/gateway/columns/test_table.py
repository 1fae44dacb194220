"""Whole tables, a user's own columns, and objects that no printer expects."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.actors.gateway.columns import PRINTERS, Include, definitions, printer_of, row

CREATED = "1970-01-01T00:00:00Z"
COLUMNS: list[dict[str, Any]] = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status', "priority": 1},
    {"name": "Ratio", "type": "number", "jsonPath": ".spec.ratio"},
    {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
    {"name": "Since", "type": "date", "jsonPath": ".spec.since"},
]


def table(
    kind: str,
    objects: Iterable[dict[str, Any]],
    *,
    now: float,
    include: Include = "Metadata",
    headers: bool = True,
    columns: Sequence[dict[str, Any]] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A whole Table, as the gateway puts it together."""
    printer = printer_of(kind, columns)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(metadata or {}),
        "columnDefinitions": definitions(printer) if headers else [],
        "rows": [row(printer, obj, now, include) for obj in objects],
    }


def foo(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "namespace": "n"}, "spec": spec}


def test_a_table_has_columns_and_rows() -> None:
    made = table("ConfigMap", [{"metadata": {"name": "a", "labels": {"l": "1"}}}], now=0.0, metadata={"continue": "c"})
    assert (made["kind"], made["apiVersion"], made["metadata"]) == ("Table", "meta.k8s.io/v1", {"continue": "c"})
    assert [column["name"] for column in made["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert made["columnDefinitions"][0]["format"] == "name"
    assert made["rows"] == [
        {
            "cells": ["a", 0, "<unknown>"],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": {"name": "a", "labels": {"l": "1"}},
            },
        }
    ]


def test_columns_are_left_out_of_later_watch_events() -> None:
    assert table("Pod", [], now=0.0, headers=False)["columnDefinitions"] == []


@pytest.mark.parametrize(("include", "held"), [("Object", foo()), ("None", None)])
def test_a_row_carries_what_was_asked_for(include: Any, held: object) -> None:
    assert table("Queue", [foo()], now=0.0, include=include)["rows"][0].get("object") == held


def test_a_definition_says_how_its_objects_are_printed() -> None:
    obj = foo(size=3, ratio=1, on=False, since=CREATED) | {
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}
    }
    made = table("Foo.example.com", [obj], now=60.0, columns=COLUMNS)
    assert made["rows"][0]["cells"] == ["x", 3, "True", 1.0, False, "60s"]
    assert [column["priority"] for column in made["columnDefinitions"]] == [0, 0, 1, 0, 0, 0]


def test_a_cell_of_another_type_stays_empty() -> None:
    made = table("Foo.example.com", [foo(size="3", ratio=True, on="no", since=5)], now=0.0, columns=COLUMNS)
    assert made["rows"][0]["cells"] == ["x", None, None, None, None, None]


@pytest.mark.parametrize(
    ("value", "printed"),
    [(1, "1"), (1.5, "1.5"), (True, "true"), ({"b": 1, "a": [None]}, '{"a":[null],"b":1}'), (None, "<no value>")],
)
def test_a_string_column_prints_anything(value: object, printed: str) -> None:
    columns = [{"name": "V", "type": "string", "jsonPath": ".spec.v"}]
    assert table("Foo.example.com", [foo(v=value)], now=0.0, columns=columns)["rows"][0]["cells"][1] == printed


def test_a_column_that_cannot_be_read_stays_empty() -> None:
    columns = [{"name": "V", "type": "string", "jsonPath": ".spec["}]
    assert table("Foo.example.com", [foo()], now=0.0, columns=columns)["rows"][0]["cells"] == ["x", None]


def test_a_definition_without_columns_shows_the_age() -> None:
    made = table("Foo.example.com", [{"metadata": {"name": "x", "creationTimestamp": CREATED}}], now=5.0)
    assert made["rows"][0]["cells"] == ["x", "5s"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("phase", "conditions", "containers", "selector", "ports", "hard", "initContainers", "metrics", "storage")


@given(
    st.sampled_from(sorted(PRINTERS)),
    st.dictionaries(st.sampled_from(("spec", "status", "data", "usage", "subjects", "subsets")), JSON),
    st.dictionaries(st.sampled_from(FIELDS), JSON),
)
def test_no_object_breaks_a_table(kind: str, obj: dict[str, Any], fields: dict[str, Any]) -> None:
    printer = printer_of(kind)
    for whole in (obj, {"spec": fields, "status": fields}, {"spec": {"template": {"spec": fields}}}):
        made = row(printer, {"metadata": {"name": "x"}, **whole}, 0.0)
        assert len(made["cells"]) == len(printer.columns)
