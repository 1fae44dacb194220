"""Manifests to objects: every bad document named, the rest loaded."""

from __future__ import annotations

import gzip
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.errors import InputError
from pumice.load.manifests import Loaded, load, load_text
from tests.kit import source

EXAMPLES = source.SHARED / "manifests" / "volcano-examples"


def loaded(text: str, source: str = "f.yaml") -> Loaded:
    """What one text gives."""
    found = Loaded()
    load_text(text, source, found)
    return found


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    """A pod with nothing in it."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}}


def names(found: Loaded) -> list[str]:
    return [obj["metadata"]["name"] for obj in found.objects]


def test_a_namespace_is_filled_in_only_where_the_kind_has_one() -> None:
    found = loaded(yaml.safe_dump_all([pod("a"), pod("b", namespace="x"), {**pod("node"), "kind": "Node"}]))
    assert [obj["metadata"].get("namespace") for obj in found.objects] == ["default", "x", None]


def test_lists_are_opened_and_typed_lists_give_their_type() -> None:
    listing = {"apiVersion": "v1", "kind": "List", "items": [pod("a")]}
    typed = {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "b"}}]}
    found = loaded(yaml.safe_dump_all([listing, typed]))
    assert names(found) == ["a", "b"]
    assert {obj["kind"] for obj in found.objects} == {"Pod"}


def test_json_is_read_too_also_several_in_a_row() -> None:
    text = json.dumps(pod("a")) + "\n" + json.dumps(pod("b"), indent=1)
    assert names(loaded(text, "f.json")) == ["a", "b"]
    assert names(loaded(json.dumps(pod("a")), "stdin")) == ["a"]


def test_json_lines_give_every_document() -> None:
    text = "".join(json.dumps(pod(name)) + "\n" for name in "abc")
    for file in ("f.jsonl", "f.json", "stdin"):
        assert names(loaded(text, file)) == ["a", "b", "c"]
    assert names(loaded(f"{text}---\n{yaml.safe_dump(pod('d'))}", "stdin")) == ["a", "b", "c", "d"]


def test_json_that_only_yaml_allows_is_read_as_kubectl_reads_it() -> None:
    assert names(loaded('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a",},}', "f.json")) == ["a"]


def test_a_null_quantity_asks_for_nothing() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{resources: {requests: {cpu: null}}}]}"
    assert loaded(text).objects[0]["spec"] == {"containers": [{"resources": {"requests": {}}}]}


def test_a_key_given_twice_is_warned_about() -> None:
    found = loaded("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\nspec: {priority: 1}")
    assert [obj["spec"] for obj in found.objects] == [{"priority": 1}]
    assert found.skipped == ["f.yaml:5: the key 'spec' is given twice; the last one counts"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-16-be"])
def test_a_byte_order_mark_names_the_encoding(tmp_path: Path, encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    (tmp_path / "f.yaml").write_bytes((mark + yaml.safe_dump(pod("ä", label="é"))).encode(encoding))
    assert names(load([str(tmp_path / "f.yaml")], io.StringIO())) == ["ä"]


def test_malformed_json_is_named_by_line() -> None:
    (problem,) = loaded('{"a": 1,\n "b": ]', "f.json").problems
    assert str(problem).startswith("f.json:2: malformed JSON")


def test_unknown_kinds_and_versions_are_named_and_skipped() -> None:
    strangers = [{**pod("x"), "kind": "Pot"}, {**pod("z"), "apiVersion": "v9"}]
    found = loaded(yaml.safe_dump_all([pod("a"), *strangers, pod("b")]))
    assert names(found) == ["a", "b"]
    assert not found.problems
    assert "v1 Pot 'x'" in found.skipped[0]
    assert "f.yaml:6 (document 2)" in found.skipped[0]
    assert "v9 Pod 'z'" in found.skipped[1]
    assert "known as v1" in found.skipped[1]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("- a", "expected an object"),
        ("kind: Pod\nmetadata: {name: x}", "apiVersion: expected a text, was nothing"),
        ("apiVersion: 1\nkind: Pod\nmetadata: {name: x}", "apiVersion: expected a text, was 1"),
        ("apiVersion: v1\nkind: Pod", "metadata: expected a mapping, was nothing"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: 5}", "metadata.name: expected a name, was 5"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: []", "Pod x: spec: expected a mapping, was a list"),
        ("a: [", "malformed YAML"),
    ],
)
def test_a_bad_document_is_named_and_those_before_it_are_kept(document: str, words: str) -> None:
    found = loaded(f"{yaml.safe_dump(pod('a'))}---\n{document}")
    assert names(found) == ["a"]
    (problem,) = found.problems
    assert words in str(problem)
    assert "(document 2)" in str(problem)


def test_the_documents_after_a_misshapen_one_are_loaded() -> None:
    assert names(loaded(f"- a\n---\n{yaml.safe_dump(pod('b'))}")) == ["b"]


def test_the_second_of_two_of_one_name_is_named_with_the_place_of_the_first() -> None:
    other = pod("a", namespace="default", cpu="7")
    found = loaded(yaml.safe_dump_all([pod("a"), pod("b"), other, pod("a"), pod("a", namespace="other")]))
    assert names(found) == ["a", "b", "a"]
    (problem,) = found.problems
    assert "Pod default/a was already given at f.yaml:1" in str(problem)


def test_generated_names_are_no_duplicates() -> None:
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}}
    assert len(loaded(yaml.safe_dump_all([obj, obj])).objects) == 2


def test_files_folders_stdin_and_gzip(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.yml").write_text(yaml.safe_dump(pod("two")))
    (tmp_path / "a.yaml.gz").write_bytes(gzip.compress(yaml.safe_dump(pod("one")).encode()))
    (tmp_path / "notes.txt").write_text("not a manifest")
    found = load([str(tmp_path), "-"], io.StringIO(yaml.safe_dump(pod("three"))))
    assert names(found) == ["one", "two", "three"]


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.yaml: does not exist"):
        load([str(tmp_path / "nowhere.yaml")], io.StringIO())
    with pytest.raises(InputError, match="no manifest in this folder"):
        load([str(tmp_path)], io.StringIO())


def test_a_file_that_is_no_text_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"# one\n# two: \xff\xfe\x00")
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(pod("b")))
    (tmp_path / "c.yaml.gz").write_bytes(b"not gzip")
    found = load([str(tmp_path)], io.StringIO())
    assert names(found) == ["b"]
    first, second = found.problems
    assert "a.yaml:2: not UTF-8 text" in str(first)
    assert "c.yaml.gz: not a whole gzip file" in str(second)


def test_nor_is_stdin_read_as_anything_but_utf_8() -> None:
    bytes_ = io.BytesIO("a: 1\nb: é".encode("latin-1"))
    found = load(["-"], io.TextIOWrapper(bytes_, "utf-8", errors="surrogateescape"))
    assert [str(problem) for problem in found.problems] == ["stdin:2: not UTF-8 text (byte 8)"]


def test_what_is_neither_file_nor_folder_is_read() -> None:
    assert load(["/dev/null"], io.StringIO()).objects == []


def test_ten_thousand_objects_in_one_file_load_quickly() -> None:
    text = yaml.safe_dump_all([pod(f"p{index}") for index in range(100)])
    big = "---\n".join(text.replace("name: p", f"name: p{part}-") for part in range(100))
    started = time.perf_counter()
    assert len(loaded(big).objects) == 10_000
    assert time.perf_counter() - started < 10


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="Volcano's example manifests are not beside the repository")
def test_every_example_of_volcano_loads_or_is_named() -> None:
    for file in sorted(EXAMPLES.rglob("*.yaml")):
        found = load([str(file)], io.StringIO())
        assert not found.problems, file
        assert len(found.objects) + len(found.skipped) > 0, file
        assert all(file.name in line for line in found.skipped)
