"""The kernels over columns say what the scalar class says, node by node."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.resources import ZERO, Resource
from core.resources.vectors import (
    Dimensions,
    exceeds,
    fits,
    from_vector,
    insufficient,
    is_empty,
    less_equal,
    request_items,
    to_vector,
)

NAMES = ["pods", "nvidia.com/gpu", "hugepages-2Mi"]
amounts = st.one_of(
    st.sampled_from([0.0, 0.05, 0.1, 0.15, 99.95, 100.0, 100.05, 100.1, 1e18, -0.1, 1.7976931348623157e308]),
    st.floats(min_value=-1e6, max_value=1e15, allow_nan=False),
)
resources = st.builds(Resource, amounts, amounts, st.none() | st.dictionaries(st.sampled_from(NAMES), amounts))
clusters = st.lists(resources, min_size=1, max_size=8)


def columns_of(nodes: list[Resource], dims: Dimensions) -> np.ndarray:
    for node in nodes:
        dims.see(node)
    return np.stack([to_vector(node, dims) for node in nodes], axis=1)


@given(resources, clusters)
def test_fits_is_less_equal(request: Resource, nodes: list[Resource]) -> None:
    dims = Dimensions()
    columns = columns_of(nodes, dims)
    expected = [request.less_equal(node, ZERO) for node in nodes]
    assert fits(request_items(request, dims), columns).tolist() == expected
    out, scratch = np.zeros(len(nodes), dtype=bool), np.empty(len(nodes))
    assert fits(request_items(request, dims), columns, out, scratch) is out
    assert out.tolist() == expected


@given(resources, clusters)
def test_insufficient_names_the_dimensions(request: Resource, nodes: list[Resource]) -> None:
    dims = Dimensions(NAMES)
    dims.see(request)
    short = insufficient(to_vector(request, dims), columns_of(nodes, dims))
    asked = {index for index, _ in request_items(request, dims)}
    for column, node in enumerate(nodes):
        names = {dims.names[index] for index in np.flatnonzero(short[:, column]) if index in asked}
        assert names == set(request.less_equal_with_resources_name(node, ZERO)[1])


@given(resources, clusters)
def test_exceeds_is_the_exact_one(request: Resource, nodes: list[Resource]) -> None:
    dims = Dimensions(NAMES)
    over = exceeds(to_vector(request, dims), columns_of(nodes, dims))
    for column, node in enumerate(nodes):
        _, names = request.less_equal_with_dimension_and_resources_name(node, request)
        found = {dims.names[index] for index in np.flatnonzero(over[:, column])} - {"pods"}
        assert found == set(names)


@given(clusters)
def test_is_empty(nodes: list[Resource]) -> None:
    assert is_empty(columns_of(nodes, Dimensions())).tolist() == [node.is_empty() for node in nodes]


@given(st.lists(resources, min_size=2, max_size=2), clusters)
def test_more_axes_broadcast(requests: list[Resource], nodes: list[Resource]) -> None:
    dims = Dimensions(NAMES)
    columns = columns_of(nodes, dims)
    vectors = [to_vector(request, dims) for request in requests]
    together = less_equal(np.stack(vectors)[:, :, None], columns)
    assert together.shape == (2, len(dims), len(nodes))
    for index, vector in enumerate(vectors):
        assert (together[index] == less_equal(vector, columns)).all()


@given(resources)
def test_there_and_back(resource: Resource) -> None:
    dims = Dimensions()
    vector = to_vector(resource, dims)
    present = [dims.index(name) for name in resource.scalars or {}]
    back = from_vector(vector, dims, present)
    assert (back.milli_cpu, back.memory) == (resource.milli_cpu, resource.memory)
    assert (back.scalars or {}) == (resource.scalars or {})
    assert from_vector(vector, dims).equal(resource)


class TestDimensions:
    def test_the_first_three_are_fixed(self) -> None:
        dims = Dimensions()
        assert [dims.index(name) for name in ("cpu", "memory", "pods")] == [0, 1, 2]

    def test_only_grows(self) -> None:
        dims = Dimensions()
        dims.see(Resource(0, 0, {"b/b": 1.0, "a/a": 1.0}))
        assert dims.names[3:] == ["a/a", "b/b"]
        assert dims.index("a/a") == 3
        assert "c/c" not in dims
        assert len(dims) == 5

    def test_a_dimension_no_node_has(self) -> None:
        dims = Dimensions()
        columns = np.array([[100.0], [100.0], [1.0]])
        assert not fits(request_items(Resource(1, 1, {"x/y": 1.0}), dims), columns).any()
        assert fits(request_items(Resource(1, 1, {"x/y": 0.0}), dims), columns).all()
