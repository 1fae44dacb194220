"""Fields that are unknown, doubled or of the wrong type, in the words and paths of Kubernetes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.api.schema import (
    duplicate_fields,
    mistyped,
    pruned,
    shape_of_kind,
    shape_of_schema,
    shape_of_type,
    unknown_fields,
)
from pumice.cluster.api.schema.wrong_fields import Mistyped, json_type

POD = shape_of_kind("", "v1", "Pod")
DEFINED = shape_of_schema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "ratio": {"type": "number"},
                    "port": {"x-kubernetes-int-or-string": True},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "parts": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                    "template": {"type": "object", "x-kubernetes-embedded-resource": True},
                },
            }
        },
    },
    top=True,
)


def pod(**spec: Any) -> dict[str, Any]:
    """A Pod with that spec."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


@pytest.mark.parametrize(
    ("obj", "paths"),
    [
        (
            pod(nodeSelector={"any": "thing"}, containers=[{"name": "c", "emptyDir": {}}]),
            ["spec.containers[0].emptyDir"],
        ),
        (pod(volumes=[{"name": "v", "emptyDir": {"sizeLimit": 1, "foo": 1}}]), ["spec.volumes[0].emptyDir.foo"]),
        (pod() | {"extra": 1, "metadata": {"name": "p", "foo": {"bar": 1}}}, ["metadata.foo", "extra"]),
        (pod(containers="not a list"), []),
        ({"spec": None}, []),
    ],
)
def test_unknown_fields_of_a_built_in_kind(obj: dict[str, Any], paths: list[str]) -> None:
    assert unknown_fields(obj, POD) == [f'unknown field "{path}"' for path in paths]


def test_unknown_fields_of_a_users_kind() -> None:
    spec: dict[str, Any] = {
        "size": 1,
        "sise": 2,
        "free": {"x": {}},
        "counts": {"any": 1},
        "parts": [{"a": "", "b": ""}],
    }
    spec["template"] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "nope": 1}, "spec": {}}
    found = unknown_fields({"apiVersion": "x/v1", "kind": "X", "metadata": {}, "spec": spec}, DEFINED)
    paths = ["spec.sise", "spec.parts[0].b", "spec.template.metadata.nope", "spec.template.spec"]
    assert found == [f'unknown field "{path}"' for path in paths]


def test_a_patch_may_remove_what_is_unknown_and_direct() -> None:
    patch = {
        "spec": {"foo": None, "$setElementOrder/containers": [{"name": "a"}], "containers": [{"$patch": "delete"}]}
    }
    assert unknown_fields(patch, POD, patch=True) == []
    assert len(unknown_fields(patch, POD)) == 3
    assert pruned(patch, POD)["spec"].keys() == {"$setElementOrder/containers", "containers"}


def test_a_hundred_are_told() -> None:
    assert len(unknown_fields({f"x{at}": 1 for at in range(500)}, POD)) == 100


def test_an_unknown_kind_has_no_unknown_fields() -> None:
    assert unknown_fields({"a": {"b": 1}}, shape_of_kind("x.dev", "v1", "X")) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["spec", "metadata", "containers", "name", "x", "labels"]), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(JSON)
def test_what_is_pruned_has_nothing_unknown(value: Any) -> None:
    obj = {"spec": value, "metadata": value}
    assert unknown_fields(pruned(obj, POD), POD) == []
    if not unknown_fields(obj, POD):
        assert pruned(obj, POD) == obj
    mistyped(obj, POD)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ('{"a":1,"a":2}', ["a"]),
        ('{"spec":{"l":[{"x":1},{"x":1,"x":2,"x":3}]}}', ["spec.l[1].x"]),
        ('{"a":{"b":1},"a":{"b":1,"b":2}}', ["a", "a.b"]),
        ('{"a":[{"x":1},{"x":1}]}', []),
        ("nonsense", []),
        ("[" * 100_000, []),
    ],
)
def test_doubled_fields(text: str, paths: list[str]) -> None:
    assert sorted(duplicate_fields(text.encode())) == sorted(f'duplicate field "{path}"' for path in paths)


@given(JSON)
def test_what_json_wrote_has_no_doubles(value: Any) -> None:
    assert duplicate_fields(json.dumps(value).encode()) == []


@pytest.mark.parametrize(
    ("value", "shape", "wrong"),
    [
        (pod(nodeName=1), POD, Mistyped("spec.nodeName", "string", "integer")),
        (pod(containers={}), POD, Mistyped("spec.containers", "array", "object")),
        (pod(nodeSelector={"a": True}), POD, Mistyped("spec.nodeSelector.a", "string", "boolean")),
        (pod(containers=[{"name": []}]), POD, Mistyped("spec.containers[0].name", "string", "array")),
        (pod(overhead={"cpu": 1, "memory": "1Gi"}), POD, None),
        (pod(overhead={"cpu": True}), POD, Mistyped("spec.overhead.cpu", "quantity", "boolean")),
        (pod(priority=1.0, nodeName=None), POD, None),
        (pod(priority=1.5), POD, Mistyped("spec.priority", "integer", "number")),
        ({"spec": {"size": "1"}}, DEFINED, Mistyped("spec.size", "integer", "string")),
        ({"spec": {"ratio": 1, "port": "http", "free": {"x": [1]}}}, DEFINED, None),
        ({"spec": {"counts": {"a": "b"}}}, DEFINED, Mistyped("spec.counts.a", "integer", "string")),
        ({"metadata": {"labels": {"a": 1}}}, DEFINED, Mistyped("metadata.labels.a", "string", "integer")),
        ([], POD, Mistyped("", "object", "array")),
    ],
)
def test_mistyped_values(value: Any, shape: Any, wrong: Mistyped | None) -> None:
    assert mistyped(value, shape) == ([wrong] if wrong else [])


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "integer"),
        (1.0, "integer"),
        (0.5, "number"),
        ("", "string"),
        ([], "array"),
    ],
)
def test_json_types(value: Any, told: str) -> None:
    assert json_type(value) == told


def test_shapes_of_types() -> None:
    assert shape_of_type("meta.v1.LabelSelector").atomic
    selector = shape_of_type("core.v1.ServiceSpec").named("selector")
    assert selector is not None
    assert (selector.sort, selector.atomic, selector.closed) == ("map", True, False)
    finalizers = shape_of_type("meta.v1.ObjectMeta").named("finalizers")
    assert finalizers is not None
    assert finalizers.list_type == "set"
