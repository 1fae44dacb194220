"""Reads the structs of Kubernetes' Go API packages: JSON names, types, protobuf numbers, list types, merge keys.

The facts stand in the struct tags and in the `+marker` comments; sentences are passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

FIELD: Final = re.compile(r"^\t(?:(?P<name>\w+)\s+)?(?P<type>[\w.\[\]*]+)\s+`(?P<tags>[^`]*)`")
TAG: Final = re.compile(r'(\w+):"([^"]*)"')
TYPE: Final = re.compile(r"^type (\w+) (\S.*)$")
IMPORT: Final = re.compile(r'^\s*(?:(\w+) )?"([\w./-]+)"$', re.MULTILINE)
CONSTANT: Final = re.compile(r'^\s*\w+\s+(\w+)\s*=\s*"([^"]*)"', re.MULTILINE)

SCALARS: Final = {
    "string": "string",
    "bool": "boolean",
    "int32": "int32",
    "int": "int32",
    "int64": "int64",
    "float64": "double",
    "[]byte": "byte",
}
SPECIAL: Final = {
    "k8s.io/apimachinery/pkg/api/resource.Quantity": "Quantity",
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": "IntOrString",
    "k8s.io/apimachinery/pkg/runtime.RawExtension": "RawExtension",
    "k8s.io/apimachinery/pkg/runtime.Object": "RawExtension",
    "k8s.io/apimachinery/pkg/types.UID": "string",
    "k8s.io/apimachinery/pkg/types.NodeName": "string",
    "k8s.io/apimachinery/pkg/apis/meta/v1.Time": "Time",
    "k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime": "MicroTime",
    "k8s.io/apimachinery/pkg/apis/meta/v1.Duration": "Duration",
    "k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1": "FieldsV1",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON": "JSON",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool": "SchemaOrBool",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray": "SchemaOrArray",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "SchemaOrStrings",
}


@dataclass
class Declared:
    """A type declaration: what stands behind its name, its markers, and the lines between its braces."""

    behind: str
    markers: dict[str, list[str]]
    body: list[str] = field(default_factory=list[str])


@dataclass
class Package:
    """A Go package: its imports by alias, declarations and string constants by type."""

    path: str
    imports: dict[str, str]
    declared: dict[str, Declared]
    constants: dict[str, list[str]]


class Sources:
    """Go packages below a module cache, read when first asked for."""

    def __init__(self, modules: Path) -> None:
        self.modules = modules
        self.package = cache(self._package)

    def message(self, path: str, name: str) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """Return a struct as the data file has it, and the (package, name) of the structs it refers to."""
        package = self.package(path)
        declared = package.declared[name]
        fields: list[list[Any]] = []
        used: list[tuple[str, str]] = []
        markers: dict[str, list[str]] = {}
        for line in declared.body:
            found = FIELD.match(line)
            if found:
                fields += self._field(package, found, markers, used)
            markers = {} if found else with_marker(markers, line)
        entry: dict[str, Any] = {"fields": fields}
        if declared.markers.get("structType") == ["atomic"]:
            entry["atomic"] = True
        return entry, used

    def _field(
        self, package: Package, found: re.Match[str], markers: dict[str, list[str]], used: list[tuple[str, str]]
    ) -> list[list[Any]]:
        tags = dict(TAG.findall(found["tags"]))
        name, *options = tags.get("json", "").split(",")
        if found["type"].endswith("TypeMeta"):
            return [["apiVersion", "string", 0, "o"], ["kind", "string", 0, "o"]]
        if name == "-" or not (name or "inline" in options):
            return []
        type_ = self.resolve(package, found["type"].lstrip("*"), used)
        flags = flags_of(found["type"], options, markers)
        wire = tags.get("protobuf", "").split(",")
        number = int(wire[1]) if len(wire) > 1 else 0
        rules = rules_of(tags, markers)
        enum = self._constants(package, found["type"].lstrip("*"))
        if enum:
            rules["enum"] = enum
        row: list[Any] = [name or wire[-1].removeprefix("name="), type_, number, flags, rules]
        while not row[-1]:
            row.pop()
        return [row]

    def _constants(self, package: Package, type_: str) -> list[str]:
        home, name = self._home(package, type_)
        if home is None or name not in home.declared or "enum" not in home.declared[name].markers:
            return []
        return list(dict.fromkeys(home.constants.get(name, [])))

    def _home(self, package: Package, type_: str) -> tuple[Package | None, str]:
        alias, dot, name = type_.rpartition(".")
        if not dot:
            return package, type_
        path = package.imports.get(alias, "")
        return (self.package(path) if path and f"{path}.{name}" not in SPECIAL else None), name

    def resolve(self, package: Package, type_: str, used: list[tuple[str, str]]) -> str:
        """Return the data file's spelling of a Go type."""
        if type_ in SCALARS:
            return SCALARS[type_]
        if type_.startswith("[]"):
            return "[]" + self.resolve(package, type_[2:].lstrip("*"), used)
        if type_.startswith("map["):
            return "{}" + self.resolve(package, type_.split("]", 1)[1].lstrip("*"), used)
        alias, dot, name = type_.rpartition(".")
        path = package.imports[alias] if dot else package.path
        if f"{path}.{name}" in SPECIAL:
            return SPECIAL[f"{path}.{name}"]
        home = self.package(path)
        declared = home.declared[name]
        if declared.behind.startswith("struct"):
            used.append((path, name))
            return message_name(path, name)
        inner = self.resolve(home, declared.behind.removeprefix("= "), used)
        return "@" + inner[2:] if "protobuf.nullable" in declared.markers and inner.startswith("[]") else inner

    def _package(self, path: str) -> Package:
        package = Package(path, {}, {}, {})
        for file in sorted(self._folder(path).glob("*.go")):
            if not file.name.endswith("_test.go") and not file.name.startswith(("zz_", "generated", "conversion")):
                read_file(package, file.read_text("utf-8"))
        return package

    def _folder(self, path: str) -> Path:
        module = "/".join(path.split("/")[:2])
        found = sorted(self.modules.glob(f"{module}@*"))
        if not found:
            raise SystemExit(f"{self.modules}: no module {module}; fetch it with `go mod download`")
        return found[-1] / "/".join(path.split("/")[2:])


def message_name(path: str, name: str) -> str:
    """`core.v1.PodSpec` for PodSpec of k8s.io/api/core/v1."""
    return ".".join([*path.split("/")[-2:], name])


def with_marker(markers: dict[str, list[str]], line: str) -> dict[str, list[str]]:
    """Return the markers with that of a comment line."""
    text = line.strip()
    if text.startswith("// +"):
        name, _, value = text.removeprefix("// +").partition("=")
        markers.setdefault(name.strip(), []).append(value.strip())
    elif text and not text.startswith("//"):
        return {}
    return markers


def flags_of(type_: str, options: list[str], markers: dict[str, list[str]]) -> str:
    """Return the flags of a field, as cluster/api/schema/table.py explains them."""
    required = "required" in markers or not ({"omitempty", "inline"} & set(options) or "optional" in markers)
    atomic = "atomic" in markers.get("mapType", []) + markers.get("structType", [])
    told = (
        ("*", type_.startswith("*")),
        ("o", "omitempty" in options),
        ("z", "omitzero" in options),
        ("r", required and "optional" not in markers),
        ("i", "inline" in options),
        ("a", atomic),
    )
    return "".join(flag for flag, holds in told if holds)


def rules_of(tags: dict[str, str], markers: dict[str, list[str]]) -> dict[str, Any]:
    """List type, merge key and default of a field."""
    default = markers.get("default", [""])[0]
    rules: dict[str, Any] = {
        "listType": markers.get("listType", [""])[0],
        "keys": markers.get("listMapKey", []),
        "mergeKey": tags.get("patchMergeKey", ""),
        "strategy": [part for part in tags.get("patchStrategy", "").split(",") if part],
    }
    told = {name: value for name, value in rules.items() if value}
    if default and not default.startswith("ref("):
        told["default"] = msgspec.json.decode(default)
    return told


def read_file(package: Package, text: str) -> None:
    """Add a file's imports, types and constants to its package."""
    head = text.split("\ntype ", 1)[0]
    for alias, path in IMPORT.findall(head):
        package.imports[alias or path.rsplit("/", 1)[-1]] = path
    markers: dict[str, list[str]] = {}
    inside: Declared | None = None
    for line in text.splitlines():
        found = TYPE.match(line)
        if found:
            inside = Declared(found[2].split(" //")[0].strip(), markers)
            package.declared[found[1]] = inside
        elif line == "}":
            inside = None
        elif inside is not None and inside.behind.startswith("struct"):
            inside.body.append(line)
        markers = {} if inside and found else with_marker(markers, line)
    for type_, value in CONSTANT.findall(text):
        package.constants.setdefault(type_, []).append(value)
