"""YAML as data with lines, by both of PyYAML's parsers."""

from typing import Any

import pytest
import yaml

import pumice.config.yaml_tree as yaml_tree
from pumice.config.errors import ConfigSyntaxError
from pumice.config.scalars import resolve_for_api
from pumice.config.yaml_tree import read_documents


@pytest.fixture(params=["pure", "fast"], autouse=True)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pure":
        monkeypatch.setattr(yaml_tree, "LOADER", yaml.SafeLoader)


def data(text: str) -> Any:
    return read_documents(text, "x")[0].data


def test_plain_and_quoted_are_kept_apart() -> None:
    assert data("a: on\nb: 'on'\nc: !!str on\nd: !!int 5\ne: |\n  5\n") == {
        "a": True, "b": "on", "c": "on", "d": 5, "e": "5\n",
    }  # fmt: skip


def test_keys_stay_texts() -> None:
    assert data("on: 1\n5: 2\nnull: 3") == {"on": 1, "5": 2, "null": 3}


def test_lines_and_spellings() -> None:
    document = read_documents("a:\n- b: 010\n- |\n  x\n", "x", first_line=10)[0]
    assert document.lines[("a", 0, "b")] == 11
    assert document.texts == {("a", 0, "b"): "010"}
    assert document.literals == frozenset({("a", 1)})


def test_merging_follows_yaml_v2_later_keys_win() -> None:
    assert data("x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}")["y"] == {"a": 1, "b": 3}
    assert data("x: &x {a: 1}\nz: &z {a: 2, c: 3}\ny: {<<: [*x, *z]}")["y"] == {"a": 1, "c": 3}


def test_merging_something_else() -> None:
    with pytest.raises(ConfigSyntaxError, match="<< needs a mapping"):
        data("y: {<<: 5}")


def test_several_documents_empty_ones_left_out() -> None:
    assert [document.data for document in read_documents("---\n---\na: 1\n---\n- 2\n", "x")] == [{"a": 1}, [2]]


def test_errors_name_the_line() -> None:
    with pytest.raises(ConfigSyntaxError) as caught:
        read_documents("a: 1\nb: [\n", "x", first_line=5)
    assert caught.value.line >= 6
    assert str(caught.value).startswith(f"x:{caught.value.line}: not YAML: ")


@pytest.mark.parametrize("deep", ["a: " + "[" * 50_000, "a: " + "{b: " * 50_000, "a:\n" + "- " * 5_000])
def test_depth_is_bounded_before_anything_is_built(deep: str) -> None:
    with pytest.raises(ConfigSyntaxError, match=r"^x:[12]: not YAML: nested deeper than 128 levels$"):
        read_documents(deep, "x")


def test_a_hundred_and_twenty_eight_levels_are_read() -> None:
    assert data("a: " + "[" * 127 + "]" * 127)


def test_aliases_add_to_the_depth_and_to_the_size() -> None:
    deep = "\n".join(["l0: &l0 []", *(f"l{at}: &l{at} {'[' * 90}*l{at - 1}{']' * 90}" for at in range(1, 4))])
    with pytest.raises(ConfigSyntaxError, match=r"x:2: nested deeper than 128 levels"):
        read_documents(deep, "x")
    wide = "\n".join(["l0: &l0 []", *(f"l{at}: &l{at} [{','.join([f'*l{at - 1}'] * 10)}]" for at in range(1, 9))])
    with pytest.raises(ConfigSyntaxError, match=r"more than 10[0-9]{3} values"):
        read_documents(wide, "x")


def test_an_alias_needs_an_anchor_and_does_not_contain_itself() -> None:
    with pytest.raises(ConfigSyntaxError, match="x:1: not YAML: the alias 'b' has no anchor"):
        read_documents("a: *b", "x")
    with pytest.raises(ConfigSyntaxError, match="x:1: an alias contains itself"):
        read_documents("a: &a [*a]", "x")


def test_an_alias_has_the_lines_of_its_anchor_at_its_own_paths() -> None:
    document = read_documents("a: &a\n  b: 010\nc:\n- *a\nd:\n  <<: *a\n  e: *a\n", "x")[0]
    assert document.data == {"a": {"b": 8}, "c": [{"b": 8}], "d": {"b": 8, "e": {"b": 8}}}
    assert document.lines[("c", 0)] == 1
    assert document.lines[("d", "b")] == document.lines[("d", "e", "b")] == document.lines[("c", 0, "b")] == 2
    assert document.lines[("d", "e")] == 7
    assert document.texts[("d", "e", "b")] == "010"


def test_an_alias_has_a_copy_of_its_anchors_value() -> None:
    found = data("a: &a {b: []}\nc: *a")
    found["c"]["b"].append(1)
    assert found["a"] == {"b": []}


def test_what_is_not_yaml_is_said_before_what_is_wrong_in_it() -> None:
    with pytest.raises(ConfigSyntaxError, match="not YAML"):
        data("a: 1\na: 2\nb: [")


def test_binary_tag_for_the_api_is_read_as_kubectl_reads_it() -> None:
    assert read_documents("a: !!binary aGk=", "x", plain=resolve_for_api)[0].data == {"a": "hi"}
    assert data("a: !!binary aGk=") == {"a": "aGk="}
