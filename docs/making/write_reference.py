"""Writes the lists of the reference from the code: options, JSON, kinds of the API, plugin points.

`python -m docs.making.write_reference`, or `nox -s documents`. A test writes them again and compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from docs.making.write_settings import table
from pumice.actors.gateway.discovery.groups import subresources
from pumice.cli.app import COMMANDS, load
from pumice.cluster.api.kinds import KINDS
from pumice.cluster.kernel.roster import RULES
from pumice.core.configuration import load_scheduler_config
from pumice.core.session.points.all_points import Points
from pumice.core.session.points.point import FLAGS
from pumice.results import FORMS, json_schema

FOLDER: Final = Path(__file__).parents[1] / "reference"
TYPED: Final = re.compile(r" <[^>]*>$")
OPTIONS: Final = """\
# Options

Every command with its options, as `pumice COMMAND --help` prints them. `nox -s documents` writes this page from the
code, and a test compares it.

## Of every command
"""
JSON: Final = """\
# JSON

What each command prints with `-o json`. `pumice schema COMMAND` prints the same as JSON Schema (2020-12). Which of it
stays is [promised](../stability.md). `nox -s documents` writes this page from the code, and a test compares it.

`key?` is not always there. Types of values below a key stand in the second table of each result.
"""
KINDS_HEAD: Final = """\
# API kinds

The kinds that [HTTP](http.md) serves and manifests may hold, with all verbs of Kubernetes' API: get, list, watch,
create, update, patch (JSON, merge, strategic, apply), delete and deletecollection. Kinds that a user defines come
besides. What a client may miss: [what is not served](not-served.md). `nox -s documents` writes this page
from the code, and a test compares it.
"""
POINTS: Final = """\
# Plugin points

A plugin adds its rules in `on_session_open`: `session.points.job_ready.add(self.name, rule)`. Where several plugins
have a rule, the point merges what they say. A flag of the plugin in `scheduler.conf` (`enable<Flag>`) switches a point
off for it. [How to write a plugin](../howto/write-a-plugin.md); the forms that a rule may have stand in
[core/plugins](../../core/plugins/README.md#the-points). `nox -s documents` writes this page from the code, and a test
compares it.
"""

# --- Options


def options() -> str:
    """Return the page of every command with its options."""
    by_command = [set(records(name)) for name in COMMANDS]
    shared = by_command[0].intersection(*by_command)
    lines = [OPTIONS, *table("option | effect", (row(each) for each in records("run") if each in shared))]
    for name, command in COMMANDS.items():
        own = [row(each) for each in records(name) if each not in shared]
        lines += ["", f"## pumice {name}", "", command.help, "", "```sh", command.example, "```"]
        lines += ["", *table("option | effect", own)] if own else []
    return "\n".join([*lines, ""])


def records(name: str) -> list[tuple[str, str]]:
    """Return the arguments and options of a command, each with its help."""
    command: Any = load(name)
    context = command.context_class(command, info_name=f"pumice {name}")
    found = (each.get_help_record(context) for each in command.get_params(context))
    # some releases of typer add the type of an argument to its name
    return [(TYPED.sub("", left), right) for left, right in filter(None, found)]


def row(record: tuple[str, str]) -> str:
    """Return a row of a table of options."""
    left, right = (re.sub(r"\s+", " ", each).strip() for each in record)
    return f"`{left}`".replace("|", "\\|") + f" | {escaped(right)}"


def escaped(text: str) -> str:
    """Return a text that Markdown and HTML leave as it is, for a cell of a table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").strip()


# --- JSON


def results() -> str:
    """Return the page of what each command prints with `-o json`."""
    lines = [JSON]
    for command in FORMS:
        schema = json_schema(command)
        lines += ["", f"## {command}"]
        for form in forms(schema):
            lines += ["", f"`{version(form)}`: {first_sentence(form)}", "", *keys_of(form)]
        named = [
            each for each in schema["$defs"].values() if each.get("properties") and "schema" not in each["properties"]
        ]
        if named:
            lines += ["", *table("type | keys", (f"{each['title']} | {listed(each)}" for each in named))]
    return "\n".join([*lines, ""])


def forms(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the forms of a result that a schema describes."""
    several = schema.get("anyOf", [schema])
    return [schema["$defs"][each["$ref"].rpartition("/")[2]] if "$ref" in each else each for each in several]


def version(form: dict[str, Any]) -> str:
    """Return "<command>/<version>" of a form."""
    return str(form["properties"].get("schema", {}).get("const", form["title"]))


def first_sentence(described: dict[str, Any]) -> str:
    """Return what a class says of itself first."""
    text = re.sub(r"\s+", " ", str(described.get("description", "")).partition("\n\n")[0])
    return escaped(text)


def keys_of(form: dict[str, Any]) -> list[str]:
    """Return a table of the keys of a form."""
    needed = set(form.get("required", ()))
    rows = (
        f"`{key}{'' if key in needed else '?'}` | {typed(value)} | {escaped(str(value.get('description', '')))}"
        for key, value in form["properties"].items()
        if key != "schema"
    )
    return table("key | type | what", rows)


def listed(described: dict[str, Any]) -> str:
    """Return the keys of a class with their types, in one line."""
    needed = set(described.get("required", ()))
    return ", ".join(
        f"`{key}{'' if key in needed else '?'}` {typed(value)}" for key, value in described["properties"].items()
    )


def typed(schema: Mapping[str, Any]) -> str:
    """Return the type of a value in words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(typed(each) for each in schema["anyOf"]))
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        inner: Mapping[str, Any] = schema.get("items") or {}
        return f"list of {typed(inner)}" if inner else "list"
    if schema.get("additionalProperties"):
        return f"map of {typed(schema['additionalProperties'])}"
    return str(schema.get("type", "anything"))


# --- Kinds


def kinds() -> str:
    """Return the page of the kinds that the API serves."""
    rows = (kind_row(key) for key in sorted(KINDS, key=lambda key: (KINDS[key].group, KINDS[key].kind)))
    head = "kind | API | also read as | namespaced | subresources | what is done with it"
    return "\n".join([KINDS_HEAD, *table(head, rows), ""])


def kind_row(key: str) -> str:
    """Return the row of a kind."""
    kind = KINDS[key]
    more = ", ".join(dict.fromkeys((*(f"{kind.group}/{each}" for each in kind.versions), *kind.also, *kind.elsewhere)))
    subs = ", ".join(each[0] for each in subresources(kind, kind.version))
    done = RULES[key].summary if key in RULES else ""
    short = f" ({', '.join(kind.short_names)})" if kind.short_names else ""
    scope = "yes" if kind.namespaced else "no"
    return f"{kind.kind}{short} | {kind.api_version} | {more} | {scope} | {subs} | {escaped(done)}"


# --- Plugin points


def points() -> str:
    """Return the page of the extension points."""
    return "\n".join([POINTS, *table("point | Volcano's name | flag | merged", point_rows()), ""])


def point_rows() -> Iterator[str]:
    """Yield the row of each point, with what its class says about merging."""
    configured = Points(load_scheduler_config(None), lambda tasks: NotImplemented)
    for attribute, point in configured.by_attribute().items():
        said = re.sub(r"\s+", " ", (type(point).__doc__ or "").strip())
        flag = FLAGS.get(point.name)
        yield f"`{attribute}` | {point.name} | {f'`enable{flag}`' if flag else 'always on'} | {escaped(said)}"


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "options.md": options,
    "json.md": results,
    "kinds.md": kinds,
    "plugin-points.md": points,
}


def main(pages: Iterable[str] = PAGES) -> None:
    """Write the pages."""
    for name in pages:
        (FOLDER / name).write_text(PAGES[name](), "utf-8")


if __name__ == "__main__":
    main()
