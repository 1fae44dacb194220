"""Strategic merge patches against recordings of Kubernetes' own code (apimachinery v0.35.3), and what is refused."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.api.patches.strategic import strategic_merge
from pumice.cluster.api.schema import SchemaMessage, message, of_kind
from pumice.core.messages.replies import Refused

RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("recorded.json").read_text("utf-8"))
POD = message("core.v1.Pod")


def described(case: dict[str, Any]) -> SchemaMessage:
    """The message of a recorded case's kind."""
    found = of_kind(case["group"], case["version"], case["kind"])
    assert found is not None
    return found


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["kind"])
def test_patches_do_what_kubernetes_does(case: dict[str, Any]) -> None:
    before = copy.deepcopy((case["current"], case["patch"]))
    got = strategic_merge(case["current"], case["patch"], described(case))
    assert (case["current"], case["patch"]) == before
    if "error" in case:
        assert isinstance(got, Refused), got
        assert got.code == 400
    else:
        assert got == case["result"]


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ([], "Invalid JSON document"),
        ({"spec": {"$patch": "nonsense"}}, "unknown patch type: nonsense in map"),
        ({"spec": {"containers": [{"image": "x"}]}}, "does not contain declared merge key: name"),
        ({"spec": {"containers": ["x"]}}, "expected a map with the merge key 'name'"),
        ({"spec": {"foo": {"a": 1}}}, 'unable to find api field in struct PodSpec for the json field "foo"'),
        ({"spec": {"$retainKeys": ["a"], "nodeName": "b"}}, "invalid patch format of retainKeys"),
        ({"spec": {"$setElementOrder/containers": {}}}, "invalid patch format of setElementOrder list"),
        ({"spec": {"$deleteFromPrimitiveList/containers": "x"}}, "invalid patch format of primitive list"),
    ],
)
def test_a_patch_that_makes_no_sense_is_refused(patch: Any, why: str) -> None:
    obj = {"spec": {"containers": [{"name": "a"}], "foo": {"b": 2}}}
    got = strategic_merge(obj, patch, POD)
    assert isinstance(got, Refused)
    assert got.code == 400
    assert why in got.message


NAMES = ("metadata", "spec", "containers", "name", "labels", "finalizers", "volumes", "nodeSelector")
DIRECTIVES = ("$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers")
JSON = st.recursive(
    st.none() | st.integers(0, 3) | st.booleans() | st.sampled_from(["a", "b", "replace", "delete", "merge"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES + DIRECTIVES), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(NAMES), JSON), st.dictionaries(st.sampled_from(NAMES + DIRECTIVES), JSON))
def test_whatever_is_patched_is_answered(obj: dict[str, Any], patch: dict[str, Any]) -> None:
    got = strategic_merge(obj, patch, POD)
    assert isinstance(got, dict) or got.code == 400
