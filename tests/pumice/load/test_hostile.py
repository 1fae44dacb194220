"""Input that nobody writes by accident: each bad object is named with its place, all others are taken, immediately."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.objects.soundness import MOST_DEPTH, unsound
from pumice.load.manifests import Loaded, load_text
from pumice.storage.codec import pack
from pumice.storage.errors import CodecError

GOOD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n"
LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
BAD = {
    "deep in flow": "x: " + "[" * 20_000,
    "deep in blocks": "".join(" " * level + "x:\n" for level in range(1_200)),
    "deep and whole": GOOD % "bad" + "spec: {x: " + "[" * 500 + "]" * 500 + "}",
    "aliases of aliases": LAUGHS,
    "an alias of itself": "x: &x [*x]",
    "a number of many digits": GOOD % "bad" + "spec: {priority: " + "9" * 23 + "}",
    "infinity": GOOD % "bad" + "spec: {x: .inf}",
    "no YAML": "x: ]",
    "a null for a key": "x: 1\n~: 2",
}


def loaded(text: str, source: str = "f.yaml") -> Loaded:
    found = Loaded()
    load_text(text, source, found)
    return found


def names(found: Loaded) -> list[str]:
    return [obj["metadata"]["name"] for obj in found.objects]


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_one_bad_document_stops_no_other(bad: str) -> None:
    found = loaded("---\n".join((GOOD % "before", bad + "\n", GOOD % "after")))
    assert {"before", "after"} <= set(names(found))
    if "priority" not in bad:  # that is for whoever knows the kind
        assert [str(problem)[:7] for problem in found.problems] == ["f.yaml:"]


@pytest.mark.parametrize("order", [sorted(BAD), sorted(BAD, reverse=True)])
def test_nor_do_several(order: list[str]) -> None:
    text = "".join(f"---\n{BAD[name]}\n---\n{GOOD % f'p{at}'}" for at, name in enumerate(order))
    found = loaded(text)
    assert [name for name in names(found) if name != "bad"] == [f"p{at}" for at in range(len(order))]
    assert len(found.problems) == len(BAD) - 1


@pytest.mark.parametrize("source", ["f.json", "stdin"])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_json_is_a_problem_with_a_line(source: str, opening: str) -> None:
    (problem,) = loaded("\n" + opening * 50_000, source).problems
    form = "JSON" if source.endswith("json") or opening == '{"a":' else "YAML"
    assert str(problem).startswith(f"{source}:2: malformed {form}: nested deeper than 1000 levels")


def test_json_of_another_beginning_is_not_called_yaml() -> None:
    (problem,) = loaded('"a": {b: [}', "f.json").problems
    assert "malformed JSON" in str(problem)
    assert "YAML" not in str(problem)


def test_a_number_of_very_many_digits_is_a_problem_of_the_file() -> None:
    (problem,) = loaded('{"a": [' + "9" * 5000 + "}", "f.json").problems
    assert "a number of more digits than anything has" in str(problem)


def test_deep_json_among_other_json() -> None:
    good = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}\n'
    found = loaded(good + "[" * 50_000, "f.json")
    assert names(found) == ["a"]
    assert str(found.problems[0]).startswith("f.json:2: malformed JSON: nested deeper than 1000 levels")


def test_an_item_of_a_list_is_named_for_its_depth_and_the_others_are_taken() -> None:
    deep: Any = {}
    for _ in range(MOST_DEPTH):
        deep = {"a": deep}
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        for name, spec in (("a", {}), ("b", deep), ("c", {"x": 10**30}), ("d", {}))
    ]
    text = json.dumps({"note": [{}], "apiVersion": "v1", "kind": "List", "items": pods})
    found = loaded(text.replace('{"apiVersion": "v1", "kind": "Pod"', '\n{"apiVersion": "v1", "kind": "Pod"'), "f.json")
    assert names(found) == ["a", "d"]
    assert [str(problem) for problem in found.problems] == [
        "f.json:3: Pod b: nested deeper than 128 levels",
        "f.json:4: Pod c: spec.x: expected a number of 64 bits, was a longer one",
    ]
    assert [found.place_of(obj) for obj in found.objects] == ["f.json:2", "f.json:5"]


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ({"metadata": {"name": "b", "labels": {"x": "\udc00"}}}, "metadata.labels.x"),
        ({"metadata": {"name": "b"}, "spec": {"command": ["a", "x\ud800y"]}}, "spec.command[1]"),
        ({"metadata": {"name": "b", "annotations": {"\udfff": "x"}}}, "metadata.annotations.\\udfff"),
    ],
)
def test_half_a_character_is_a_problem_of_its_object(where: dict[str, Any], named: str) -> None:
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}} for name in "ac"]
    pods.insert(1, {**pods[0], **where})
    found = loaded(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}, indent=0), "f.json")
    assert names(found) == ["a", "c"]
    assert str(found.problems[0]).startswith(
        "f.json:12: Pod b: " + named + ": expected a text, was half of a character"
    )
    assert str(found.problems[0]).isprintable()


PLAIN = st.none() | st.booleans() | st.text(max_size=3) | st.integers(-(2**63), 2**64 - 1) | st.floats(-1e300, 1e300)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=3))
def test_what_fits_is_sound(obj: dict[str, Any]) -> None:
    assert unsound(obj) == ""


@given(VALUES, st.sampled_from((10**20, -(2**63) - 1, float("inf"), float("nan"))), st.integers(0, 100))
def test_what_does_not_fit_is_found_wherever_it_stands(beside: Any, number: float, levels: int) -> None:
    value: Any = number
    for _ in range(levels):
        value = [beside, value]
    assert unsound({"a": beside, "b": value}).startswith("b" + "[1]" * levels + ": expected a number")


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=3)


@given(st.recursive(ANY_TEXT, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner), max_leaves=5))
def test_what_is_sound_can_be_packed(value: Any) -> None:
    try:
        pack({"a": value})
    except CodecError:
        assert "half of a character" in unsound({"a": value})
    else:
        assert unsound({"a": value}) == ""


@given(st.text(st.sampled_from("[]{},:&*ab<!|>-'\"\\#?%@ \n\t0189.e+~_"), max_size=60))
def test_any_text_is_objects_or_problems(text: str) -> None:
    found = loaded(text + "\n---\n" + GOOD % "after")
    assert all(problem.line for problem in found.problems)


@pytest.mark.parametrize("part", ["name", "namespace"])
def test_names_that_would_write_lines_of_their_own_are_refused(part: str) -> None:
    bad = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", part: "x\n\x1b[31mERROR"}}
    found = loaded(json.dumps(bad) + GOOD.join(("\n---\n", "")) % "good", "f.yaml")
    assert names(found) == ["good"]
    assert all(str(problem).isprintable() for problem in found.problems)
