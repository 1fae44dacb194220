"""Published keys of results: `python -m tests.pumice.cli.published` adds new ones to `published_keys.json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pumice.results import FORMS, forms_of, json_schema, tag_of

Schema = dict[str, Any]
Keys = dict[str, str]
"""By path, the types of the value; `?`: the key is not always there. `*` is any key, `[]` any element."""

FILE: Final = Path(__file__).with_name("published_keys.json")
ADVICE: Final = (
    "give the result a new version (its tag) and keep what readers need, or take the change back;"
    " new keys and versions: python -m tests.pumice.cli.published"
)


def published() -> dict[str, Keys]:
    """Return what the file holds, by "command/version form"."""
    found: dict[str, Keys] = json.loads(FILE.read_text())
    return found


def current() -> dict[str, Keys]:
    """Return what the code prints, by "command/version form"."""
    schemas = [(tag_of(forms_of(command)[0]), json_schema(command)) for command in FORMS]
    return {f"{tag} {name}": keys for tag, schema in schemas for name, keys in keys_of(schema).items()}


def broken(was: Mapping[str, Keys], now: Mapping[str, Keys]) -> list[str]:
    """Return a line for each published key that is gone, or another thing, without a new version."""
    lines: list[str] = []
    versions = {form.partition(" ")[0] for form in now}
    commands = {version.partition("/")[0] for version in versions}
    for form, keys in was.items():
        version = form.partition(" ")[0]
        found = now.get(form)
        if found is None and (version in versions or version.partition("/")[0] not in commands):
            lines.append(f"{form} is gone")
        elif found is not None:
            lines += [f"{form}: {key} is gone" for key in keys.keys() - found.keys()]
            both = keys.keys() & found.keys()
            lines += [f"{form}: {key} was {keys[key]}, is {found[key]}" for key in both if keys[key] != found[key]]
    return sorted(lines)


def keys_of(schema: Schema) -> dict[str, Keys]:
    """Return the keys of each form of a result, by the form's name."""
    forms = schema.get("anyOf", [schema])
    named = {each["$ref"].rpartition("/")[2] if "$ref" in each else each["title"]: each for each in forms}
    return {name: dict(sorted(_walk(each, "", schema["$defs"], ()))) for name, each in named.items()}


def _walk(
    schema: dict[str, Any], path: str, defs: dict[str, Any], within: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield path and types of all that is below a path. A class within itself is not entered again."""
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name in within:
        return
    here, deeper = (defs[name], (*within, name)) if name else (schema, within)
    for each in here.get("anyOf", ()):
        yield from _walk(each, path, defs, deeper)
    for key, below in here.get("properties", {}).items():
        inner = f"{path}.{key}".lstrip(".")
        yield inner, _types(below, defs) + ("" if key in here.get("required", ()) else "?")
        yield from _walk(below, inner, defs, deeper)
    for key, mark in (("additionalProperties", ".*"), ("items", "[]")):
        inside: Schema = here.get(key) or {}
        if inside:
            inner = f"{path}{mark}".lstrip(".")
            yield inner, _types(inside, defs)
            yield from _walk(inside, inner, defs, deeper)


def _types(schema: Schema, defs: Schema) -> str:
    """Return the JSON types of a value, in order."""
    if "$ref" in schema:
        return _types(defs[schema["$ref"].rpartition("/")[2]], defs)
    if "anyOf" in schema:
        return "|".join(sorted({kind for each in schema["anyOf"] for kind in _types(each, defs).split("|")}))
    if "const" in schema or "enum" in schema:
        return "string"
    return str(schema.get("type", "anything"))


def main() -> int:
    """Add what is new. Refuse to take anything away."""
    was, now = published(), current()
    if lines := broken(was, now):
        sys.stderr.write("\n".join([*lines, ADVICE, ""]))
        return 1
    FILE.write_text(json.dumps({**was, **now}, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
