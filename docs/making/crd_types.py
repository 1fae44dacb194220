"""Reads custom resource definitions into messages: an object of the schema is a message of its own.

What a definition repeats of Kubernetes' own types (pod templates, mostly) becomes a reference to the message, when
fields, types and list types are equal all the way down.
"""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]
Entry = dict[str, Any]

_PLAIN: Final = {"boolean": "boolean", "number": "double"}
_RULES: Final = {
    "x-kubernetes-list-type": "listType",
    "x-kubernetes-list-map-keys": "keys",
    "default": "default",
    "enum": "enum",
    "minimum": "minimum",
    "maximum": "maximum",
    "minLength": "minLength",
    "maxLength": "maxLength",
    "minItems": "minItems",
    "pattern": "pattern",
}
_AS_TIME: Final = {"MicroTime": "Time"}
_FEWEST: Final = 2


class Definitions:
    """Messages made from definitions, beside those that are known already."""

    def __init__(self, known: dict[str, Entry]) -> None:
        self.known = known
        self.made: dict[str, Entry] = {}
        self.candidates: dict[frozenset[str], list[str]] = {}
        for name, entry in known.items():
            self.candidates.setdefault(frozenset(self.flat(entry)), []).append(name)

    def flat(self, entry: Entry) -> dict[str, list[Any]]:
        """Fields by JSON name, those of embedded structs among them."""
        found: dict[str, list[Any]] = {}
        for row in entry["fields"]:
            if len(row) > 3 and "i" in row[3]:
                found.update(self.flat(self.known[row[1]]))
            else:
                found[row[0]] = row
        return found

    def kind(self, definition: Schema, version: Schema) -> tuple[str, str]:
        """Return the key `group/version/kind` and the name of a served version's message, which is made."""
        spec = definition["spec"]
        names = spec["names"]
        name = f"volcano.{spec['group'].split('.')[0]}.{version['name']}.{names['kind']}"
        self.message(version["schema"]["openAPIV3Schema"], name, top=True)
        return f"{spec['group']}/{version['name']}/{names['kind']}", name

    def message(self, schema: Schema, name: str, top: bool = False) -> str:
        """Return the name of the message for an object's schema: a known one, or one made under `name`."""
        properties: dict[str, Schema] = schema.get("properties", {})
        if not top and len(properties) >= _FEWEST:
            for candidate in self.candidates.get(frozenset(properties), []):
                if self.same(schema, candidate):
                    return candidate
        required = schema.get("required", [])
        rows: list[list[Any]] = []
        for field, each in properties.items():
            if top and field == "metadata":
                rows.append([field, "meta.v1.ObjectMeta"])
            else:
                rows.append(self.row(field, each, f"{name}{field[:1].upper()}{field[1:]}", field in required))
        entry: Entry = {"fields": rows}
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            entry["open"] = True
        twin = next((known for known, each in self.made.items() if each == entry), "") if rows and not top else ""
        if not twin:
            self.made[name] = entry
        return twin or name

    def row(self, field: str, schema: Schema, name: str, required: bool) -> list[Any]:
        """Return a field as the data file has it."""
        type_ = self.type_of(schema, name)
        flags = "" if required else "o"
        flags += "r" if required else ""
        flags += "a" if schema.get("x-kubernetes-map-type") == "atomic" else ""
        rules = {ours: schema[theirs] for theirs, ours in _RULES.items() if theirs in schema}
        if type_ == "Quantity":
            rules.pop("pattern", None)
        row: list[Any] = [field, type_, 0, flags, rules]
        while not row[-1]:
            row.pop()
        return row

    def type_of(self, schema: Schema, name: str) -> str:
        """Return the data file's spelling of a schema's type."""
        special = scalar(schema)
        if special:
            return special
        if schema["type"] == "array":
            return "[]" + self.type_of(schema["items"], name)
        if "additionalProperties" in schema:
            return "{}" + self.type_of(schema["additionalProperties"], name)
        return self.message(schema, name)

    def same(self, schema: Schema, name: str) -> bool:
        """Return whether an object's schema agrees with the known message."""
        fields = self.flat(self.known[name])
        properties: dict[str, Schema] = schema.get("properties", {})
        whole = schema.get("x-kubernetes-map-type") == "atomic"
        return (
            fields.keys() == properties.keys()
            and all(self.same_field(each, fields[field]) for field, each in properties.items())
            and (whole == bool(self.known[name].get("atomic")) or whole)
        )

    def same_field(self, schema: Schema, row: list[Any]) -> bool:
        """Return whether a field's schema agrees with the known field: type, list type and keys."""
        rules: dict[str, Any] = row[4] if len(row) > 4 else {}
        return (
            self.same_type(schema, row[1])
            and schema.get("x-kubernetes-list-type", "atomic") == rules.get("listType", "atomic")
            and schema.get("x-kubernetes-list-map-keys", []) == rules.get("keys", [])
        )

    def same_type(self, schema: Schema, type_: str) -> bool:
        """Return whether a schema's type is the one that the data file spells so."""
        special = scalar(schema)
        if special:
            return special == _AS_TIME.get(type_, type_)
        if schema["type"] == "array":
            return type_[0] in "[@" and self.same_type(schema["items"], type_[type_.index("]") + 1 :])
        if "additionalProperties" in schema:
            return type_[0] == "{" and self.same_type(schema["additionalProperties"], type_[2:])
        return type_ in self.known and self.same(schema, type_)


def scalar(schema: Schema) -> str:
    """Return the type of a schema that is neither an object nor a list; empty for those."""
    if schema.get("x-kubernetes-int-or-string"):
        return "Quantity" if "pattern" in schema else "IntOrString"
    kind, form = schema.get("type", ""), schema.get("format", "")
    if kind == "string":
        return {"date-time": "Time", "byte": "byte"}.get(form, "string")
    if kind == "integer":
        return form or "int64"
    if kind == "object" and not schema.get("properties") and "additionalProperties" not in schema:
        return "RawExtension" if schema.get("x-kubernetes-preserve-unknown-fields") else ""
    return _PLAIN.get(kind, "")
