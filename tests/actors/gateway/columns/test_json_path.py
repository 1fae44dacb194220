"""JSONPath as client-go reads it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.actors.gateway.columns.json_path import Effort, JsonPathError, compile_path, find

OBJECT: dict[str, Any] = {
    "spec": {"tier": 2, "a.b": "dotted", "list": [0, 1, 2, 3], "empty": []},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "count": 3},
            {"type": "Other", "status": "False"},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.tier", [2]),
        ("spec", None),
        ("$.spec.tier", [2]),
        (".spec.missing.deeper", []),
        (".spec.tier.deeper", []),
        (r".spec.a\.b", ["dotted"]),
        (".spec['tier']", [2]),
        (r".spec['a\.b']", ["dotted"]),
        (".spec.list[0]", [0]),
        (".spec.list[-1]", [3]),
        (".spec.list[1:3]", [1, 2]),
        (".spec.list[-2:]", [2, 3]),
        (".spec.list[::2]", [0, 2]),
        (".spec.list[*]", [0, 1, 2, 3]),
        (".spec.list[0,2]", [0, 2]),
        (".spec.list[4]", None),
        (".spec.empty[*]", []),
        (".spec.tier[0]", None),
        (".status.conditions[*].type", ["Ready", "Other"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Other')].status", ["False"]),
        ('.status.conditions[?(@.type!="Ready")].status', ["False"]),
        (".status.conditions[?(@.count>2)].type", ["Ready"]),
        (".status.conditions[?(@.count)].type", ["Ready"]),
        ('.status.conditions[?(@.count>"2")].type', None),
        ('.status[?(@.type=="Ready")]', None),
        ("..type", ["Ready", "Other"]),
        (".spec.*", [2, "dotted", [0, 1, 2, 3], []]),
        (".spec.list[x]", None),
        (".spec.list[0", None),
        ('.status.conditions[?(@.type=="Ready"', None),
        ('.status.conditions[?(@.type=="Ready)]', None),
    ],
)
def test_paths_find_what_client_go_finds(path: str, found: list[Any] | None) -> None:
    if found is None:
        with pytest.raises(JsonPathError):
            find(path, OBJECT)
    else:
        assert find(path, OBJECT) == found


@given(st.text(alphabet=".[]'\"?@()=<>!:,*$\\ ab01-", max_size=30))
def test_no_expression_breaks_the_reader(path: str) -> None:
    try:
        compile_path(path)
        find(path, OBJECT)
    except JsonPathError:
        pass


MUCH = [
    "$" + "." * 400 + "a",
    ".a" + "[*]" * 100,
    ".a" + "[0,0]" * 100,
    "." + "x" * 5_000,
    ".a[?(@" + "[0,0]" * 90 + ")]",
]


@pytest.mark.parametrize("path", MUCH)
def test_paths_that_multiply_are_no_paths(path: str) -> None:
    deep: Any = [1, 2]
    for _ in range(12):
        deep = [deep, deep]
    with pytest.raises(JsonPathError, match=r"^more than 5000? values$|^longer than 512 letters$"):
        find(path, {"a": deep})


def test_the_columns_of_a_row_share_what_they_may_find() -> None:
    effort = Effort()
    assert len(find(".a[*]", {"a": [0] * 3_000}, effort)) == 3_000
    with pytest.raises(JsonPathError, match="more than 5000 values"):
        find(".a[*]", {"a": [0] * 3_000}, effort)


@pytest.mark.parametrize("path", ["[-]", "[1:-]", "[::-]", "[--1]"])
def test_a_sign_alone_is_no_index(path: str) -> None:
    with pytest.raises(JsonPathError, match="invalid array index"):
        compile_path(path)
