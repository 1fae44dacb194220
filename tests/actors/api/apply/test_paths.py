"""Sets of fields and their FieldsV1 trees: there and back, and how conflicts show a path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.api.apply.paths import from_fields, shown, to_fields

STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"x"', "v:1", "f:a.b/c"])
PATHS = st.frozensets(st.lists(STEPS, min_size=1, max_size=4).map(tuple), max_size=8)


@given(PATHS)
def test_a_tree_tells_the_set(paths: frozenset[tuple[str, ...]]) -> None:
    assert from_fields(to_fields(paths)) == paths


@given(st.recursive(st.none() | st.text(max_size=3), lambda inner: st.dictionaries(st.text(max_size=3), inner)))
def test_any_tree_can_be_read(tree: object) -> None:
    paths = from_fields(tree)
    assert from_fields(to_fields(paths)) == paths


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
