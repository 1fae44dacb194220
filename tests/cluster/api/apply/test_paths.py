"""Steps to what lists hold, and how conflicts show a path."""

from typing import Any

import pytest

from pumice.cluster.api.apply.field_sets import shown, steps_of
from pumice.cluster.api.schema import shape_of_kind
from pumice.cluster.api.schema.shapes import Shape, field_shape, shape_of_schema

SPEC = field_shape(shape_of_kind("", "v1", "Pod"), "spec")
PORTS = field_shape(field_shape(SPEC, "containers").item(), "ports")
TAGS = shape_of_schema({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}})


@pytest.mark.parametrize(
    ("shape", "item", "step"),
    [
        (field_shape(SPEC, "containers"), {"name": "a", "image": "i"}, 'k:{"name":"a"}'),
        (field_shape(SPEC, "containers"), {"image": "i"}, None),
        (field_shape(SPEC, "containers"), "a", None),
        (PORTS, {"containerPort": 80}, 'k:{"containerPort":80,"protocol":"TCP"}'),
        (PORTS, {"protocol": "UDP", "containerPort": 80}, 'k:{"containerPort":80,"protocol":"UDP"}'),
        (TAGS, "a", 'v:"a"'),
        (TAGS, 1, "v:1"),
        (TAGS, None, None),
        (TAGS, ["a"], None),
    ],
)
def test_a_step_to_an_element_says_what_it_is_known_by(shape: Shape, item: Any, step: str | None) -> None:
    assert steps_of([item], shape) == [step]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("f:spec", "f:weight"), ".spec.weight"),
        (("f:spec", "f:containers", 'k:{"name":"web"}', "f:image"), '.spec.containers[name="web"].image'),
        (("f:ports", 'k:{"port":80,"protocol":"TCP"}'), '.ports[port=80,protocol="TCP"]'),
        (("f:finalizers", 'v:"a/b"'), '.finalizers[="a/b"]'),
        (("f:x", "k:not json"), ".x[not json]"),
    ],
)
def test_conflicts_show_paths_as_kubernetes_does(path: tuple[str, ...], text: str) -> None:
    assert shown(path) == text
