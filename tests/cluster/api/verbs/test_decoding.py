"""Nulls in objects are absent fields, in place and in a copy alike; in maps of texts they are empty ones."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.api.schema.shapes import shape_of_kind
from pumice.cluster.api.verbs.requests import drop_nulls, without_nulls

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=2), VALUES, max_size=4))
def test_a_copy_without_nulls_is_what_dropping_them_leaves(obj: dict[str, Any]) -> None:
    before = copy.deepcopy(obj)
    found = without_nulls(obj)
    assert obj == before
    drop_nulls(obj)
    assert found == obj


def test_nulls_in_maps_of_texts_are_empty_texts() -> None:
    obj: dict[str, Any] = {
        "metadata": {"labels": {"a": None, "b": "x"}, "annotations": None, "generation": None},
        "spec": {"nodeSelector": {"a": None}, "overhead": {"cpu": None}, "containers": [{"name": "c", "image": None}]},
        "odd": {"a": None},
    }
    drop_nulls(obj, shape_of_kind("", "v1", "Pod"))
    assert obj == {
        "metadata": {"labels": {"a": "", "b": "x"}},
        "spec": {"nodeSelector": {"a": ""}, "overhead": {}, "containers": [{"name": "c"}]},
        "odd": {},
    }


@pytest.mark.parametrize(
    ("kind", "field"),
    [("ConfigMap", "data"), ("ConfigMap", "binaryData"), ("Secret", "data"), ("Secret", "stringData")],
)
def test_keys_without_values_stay(kind: str, field: str) -> None:
    obj: dict[str, Any] = {field: {"a": None}}
    drop_nulls(obj, shape_of_kind("", "v1", kind))
    assert obj == {field: {"a": ""}}


def test_moments_in_a_map_stay_absent() -> None:
    obj: dict[str, Any] = {"status": {"disruptedPods": {"a": None}}}
    drop_nulls(obj, shape_of_kind("policy", "v1", "PodDisruptionBudget"))
    assert obj == {"status": {"disruptedPods": {}}}


def test_nothing_of_a_copy_is_shared() -> None:
    obj: dict[str, Any] = {"a": [{"b": {}}], "c": {"d": [None, []]}}
    found = without_nulls(obj)
    found["a"][0]["b"]["x"] = found["c"]["d"][1] = 1
    assert obj == {"a": [{"b": {}}], "c": {"d": [None, []]}}
