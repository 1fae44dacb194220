"""The readers behind the schema table: Go structs and custom resource definitions."""

from pathlib import Path
from typing import Any

import pytest

from docs.making.crd_types import Definitions
from docs.making.field_notes import NOTES
from docs.making.go_types import Sources
from pumice.cluster.api.schema.table import flat_fields, message

TYPES = """package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Widget sentence.
type Widget struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	Spec WidgetSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
}

type WidgetSpec struct {
	Source `json:",inline" protobuf:"bytes,1,opt,name=source"`
	// Sentence.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	Parts []Part `json:"parts" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,2,rep,name=parts"`
	// +optional
	Count *int32 `json:"count,omitempty" protobuf:"varint,3,opt,name=count"`
	Amounts Amounts `json:"amounts,omitempty" protobuf:"bytes,4,rep,name=amounts"`
	// +default="Big"
	Size Size `json:"size" protobuf:"bytes,5,opt,name=size"`
	When metav1.Time `json:"when,omitempty,omitzero" protobuf:"bytes,6,opt,name=when"`
	Raw []byte `json:"raw" protobuf:"bytes,7,opt,name=raw"`
	Hidden string `json:"-"`
	Extra map[string]Values `json:"extra" protobuf:"bytes,8,rep,name=extra"`
}

// +structType=atomic
type Part struct {
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

type Source struct {
	Ref *string `json:"$ref,omitempty" protobuf:"bytes,1,opt,name=ref"`
}

type Amounts map[Name]resource.Quantity
type Name string

// +enum
type Size string

const (
	Big Size = "Big"
	Small Size = "Small"
)

// +protobuf.nullable=true
type Values []string
"""


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    """A module cache with one package of its own."""
    folder = tmp_path / "k8s.io/api@v1.0.0/toys/v1"
    folder.mkdir(parents=True)
    (folder / "types.go").write_text(TYPES, "utf-8")
    return Sources(tmp_path)


def test_a_struct_becomes_a_message(sources: Sources) -> None:
    entry, used = sources.message("k8s.io/api/toys/v1", "WidgetSpec")
    listed = {"listType": "map", "keys": ["name"], "mergeKey": "name", "strategy": ["merge"]}
    assert entry["fields"] == [
        ["source", "toys.v1.Source", 1, "i"],
        ["parts", "[]toys.v1.Part", 2, "r", listed],
        ["count", "int32", 3, "*o"],
        ["amounts", "{}Quantity", 4, "o"],
        ["size", "string", 5, "r", {"default": "Big", "enum": ["Big", "Small"]}],
        ["when", "Time", 6, "oz"],
        ["raw", "byte", 7, "r"],
        ["extra", "{}@string", 8, "r"],
    ]
    assert used == [("k8s.io/api/toys/v1", "Source"), ("k8s.io/api/toys/v1", "Part")]


def test_kinds_have_a_type_and_wholes_say_so(sources: Sources) -> None:
    assert sources.message("k8s.io/api/toys/v1", "Widget")[0]["fields"][:2] == [
        ["apiVersion", "string", 0, "o"],
        ["kind", "string", 0, "o"],
    ]
    part = {"fields": [["name", "string", 1, "r"]], "atomic": True}
    assert sources.message("k8s.io/api/toys/v1", "Part") == (part, [])
    assert sources.message("k8s.io/api/toys/v1", "Source")[0]["fields"] == [["$ref", "string", 1, "*o"]]


def test_a_missing_module_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no module k8s\.io/api"):
        Sources(tmp_path).package("k8s.io/api/toys/v1")


def definition(spec: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A definition and its version."""
    top = {"kind": {"type": "string"}, "metadata": {"type": "object"}, "spec": {"type": "object", **spec}}
    version = {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": top, "required": ["spec"]}}}
    return {"spec": {"group": "toys.volcano.sh", "names": {"kind": "Toy"}}}, version


def test_a_definition_becomes_messages() -> None:
    made = Definitions({})
    weight = {"type": "integer", "format": "int32", "minimum": 1, "default": 1}
    amount = {"x-kubernetes-int-or-string": True, "pattern": "^x$"}
    named = {"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}}
    spec: dict[str, Any] = {"weight": weight, "amounts": {"type": "object", "additionalProperties": amount}}
    spec["list"] = {
        "type": "array",
        "items": named,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
    }
    assert made.kind(*definition({"properties": spec})) == ("toys.volcano.sh/v1/Toy", "volcano.toys.v1.Toy")
    top = made.made["volcano.toys.v1.Toy"]["fields"]
    assert top[1:] == [["metadata", "meta.v1.ObjectMeta"], ["spec", "volcano.toys.v1.ToySpec", 0, "r"]]
    assert made.made["volcano.toys.v1.ToySpec"]["fields"] == [
        ["weight", "int32", 0, "o", {"default": 1, "minimum": 1}],
        ["amounts", "{}Quantity", 0, "o"],
        ["list", "[]volcano.toys.v1.ToySpecList", 0, "o", {"listType": "map", "keys": ["a"]}],
    ]


def test_what_kubernetes_has_already_is_referred_to() -> None:
    known = {"core.v1.Pair": {"fields": [["a", "string", 1, "r"], ["b", "[]string", 2, "o"]]}}
    pair = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "string"}}},
    }
    as_set = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    other = {"type": "object", "properties": {"a": {"type": "string"}, "b": as_set}}
    made = Definitions(known)
    made.kind(*definition({"properties": {"same": pair, "other": other}}))
    types = {row[0]: row[1] for row in made.made["volcano.toys.v1.ToySpec"]["fields"]}
    assert types == {"same": "core.v1.Pair", "other": "volcano.toys.v1.ToySpecOther"}


def test_notes_are_sentences_about_fields_of_the_table() -> None:
    for place, sentence in NOTES.items():
        name, _, field = place.partition("#")
        found = flat_fields(name)[field].rules.doc if field else message(name).doc
        assert found == sentence, f"{place}: write the table again"
        assert sentence.endswith((".", "…")), place
