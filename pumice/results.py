# SPDX-License-Identifier: Apache-2.0
"""Results of commands as values: `-o json` prints them, `pumice schema` describes them, the library returns them.

Each form of a command's result is a `Result` whose tag is "<command>/<version>". It stands beside what makes it, and
`FORMS` says where. A published key stays: one that goes, or becomes something else, needs a new version.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, get_type_hints

import msgspec

from pumice.core.objects.metadata import Object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

T = TypeVar("T")

FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "run": (
        "pumice.runtime.summary:RunResult",
        "pumice.runtime.summary:FaultsFound",
    ),
    "mirror": ("pumice.runtime.summary:MirrorResult",),
    "decide": ("pumice.cli.decide:DecideResult",),
    "check": ("pumice.questions.check.review:Review",),
    "conformance": ("pumice.proof.conformance.runner:ConformanceResult",),
    "journal": (
        "pumice.questions.history.story:JournalOverview",
        "pumice.cli.journal:JournalCheck",
        "pumice.questions.history.parts:JournalParts",
        "pumice.questions.history.story:JournalCycle",
        "pumice.cli.journal:JournalStory",
    ),
    "journal-record": ("pumice.questions.history.entries:JournalRecord",),
    "explain": ("pumice.questions.explain.account:Account",),
    "queue": ("pumice.questions.adviser.waiting_jobs:Standings",),
    "whatif": (
        "pumice.questions.whatif.difference:FutureChanges",
        "pumice.cli.futures.search:StartsWith",
    ),
    "eta": (
        "pumice.questions.eta.estimate:Estimates",
        "pumice.questions.eta.score:EtaScore",
    ),
    "replay": (
        "pumice.questions.replay.verify:Verified",
        "pumice.questions.replay.rerun:Reconfigured",
    ),
    "measures": (
        "pumice.questions.measures.measures:MeasuresResult",
        "pumice.questions.measures.held:HeldResult",
    ),
    "report": ("pumice.cli.report:ReportResult",),
    "sweep": ("pumice.cli.sweep:SweepResult",),
    "tune": ("pumice.questions.tuning.tune:TuneResult",),
    "evaluate": ("pumice.questions.evaluation.evaluate:Evaluation",),
    "gate": (
        "pumice.questions.gate.explained:GateReport",
        "pumice.questions.gate.mutants:MutationResult",
    ),
    "timeline": ("pumice.cli.timeline:TimelineResult",),
    "view": ("pumice.cli.view:ViewResult",),
    "top": ("pumice.cli.tables.frame:TopResult",),
    "mcp": ("pumice.cli.mcp:McpResult",),
    "kubeconfig": ("pumice.cli.kubeconfig:KubeconfigResult",),
    "bench": ("pumice.proof.bench.figures:BenchResult",),
    "stress": (
        "pumice.proof.storm.report:StressResult",
        "pumice.proof.strangers.report:SubjectsResult",
    ),
    "schema": ("pumice.cli.schema:SchemaResult",),
}
"""By command, the module and class of each form that its result can have. `journal-record`: a line of `pumice journal
--follow`; `evaluate`: what `pumice.evaluate` returns.
"""

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
DEFINED: Final = "#/$defs/"
SAID: Final = re.compile(r"(?<!Not )`(\w+)`: (.+?)(?:;|\.)(?:\s|$)")
"""Sentence of a docstring about a key: "`low_s`: the shortest wait; `high_s`: …"."""


class Result(msgspec.Struct, tag_field="schema"):
    """Result of a command; printed, the key "schema" comes first and holds the tag.

    A key that is there only sometimes has the default `msgspec.UNSET`; every other key is always there.
    """

    def plain(self) -> Object:
        """Return it as it is printed: plain data."""
        found: Object = msgspec.to_builtins(self)
        return found


class Sides(msgspec.Struct, Generic[T], frozen=True):
    """A value of the one run or future, and of the other."""

    before: T
    after: T


class Laid(Result):
    """A result whose only field is a mapping that is laid out beside "schema"."""

    def plain(self) -> Object:
        """Return the entries of the mapping after "schema"."""
        (name,) = self.__struct_fields__
        return {"schema": tag_of(type(self)), **msgspec.to_builtins(getattr(self, name))}


def tag_of(form: type[Result]) -> str:
    """Return "<command>/<version>"."""
    return str(form.__struct_config__.tag)


def forms_of(command: str) -> list[type[Result]]:
    """Return the forms of a command's result. Raises KeyError. Imports what makes them."""
    places = (each.split(":") for each in FORMS[command])
    return [getattr(import_module(module), name) for module, name in places]


def json_schema(command: str) -> Object:
    """Return the JSON Schema (2020-12) of a command's result. Raises KeyError."""
    forms = forms_of(command)
    (tag,) = {tag_of(form) for form in forms}
    types = [_printed(form) for form in forms]
    schemas, components = msgspec.json.schema_components(types, ref_template=DEFINED + "{name}")
    infos = _objects(msgspec.inspect.multi_type_info(types))
    needed = {name: _required(info) for info in infos if (name := getattr(info.cls, "__name__", "")) in components}
    for name, component in components.items():
        _describe(component)
        if name in needed or "[" in component.get("title", ""):
            component["required"] = needed.get(name, [*component["properties"]])
            for each in component["properties"].values():
                each.pop("default", None)
    tops = [_top(form, schema, components) for form, schema in zip(forms, schemas, strict=True)]
    several = {"title": tag, "description": "One of several forms, by the options.", "anyOf": tops}
    body = tops[0] if len(tops) == 1 else several
    return {"$schema": DIALECT, "$id": f"urn:pumice:{tag}", **body, "$defs": dict(sorted(components.items()))}


def _printed(form: type[Result]) -> Any:
    """Return the described type: of a `Laid` result that of its mapping."""
    if not issubclass(form, Laid):
        return form
    (name,) = form.__struct_fields__
    return get_type_hints(form)[name]


def _top(form: type[Result], schema: Object, components: Object) -> Object:
    """Return the schema of a form, out of the components: its keys, with "schema" before them."""
    if "$ref" in schema:
        schema = components.pop(schema["$ref"].removeprefix(DEFINED))
    keys = {name: value for name, value in schema.get("properties", {}).items() if name != "schema"}
    properties = {"schema": {"const": tag_of(form)}, **keys}
    told = {"title": form.__name__, "description": form.__doc__ or ""}
    required = dict.fromkeys(("schema", *schema.get("required", ())))
    rest = {name: value for name, value in schema.items() if name not in ("title", "description")}
    found = {**told, **rest, "properties": properties, "required": [*required]}
    _describe(found)
    return found


def _describe(component: Object) -> None:
    """Put the paragraphs of its docstring in one line each, and sentences about single keys beside these."""
    if "description" in component:
        paragraphs = (" ".join(each.split()) for each in component["description"].split("\n\n"))
        component["description"] = "\n\n".join(paragraphs)
        for key, text in SAID.findall(component["description"]):
            if key in component.get("properties", {}):
                component["properties"][key]["description"] = text


def _required(info: msgspec.inspect.StructType | msgspec.inspect.DataclassType) -> list[str]:
    """Return the keys that are always there."""
    cls: type[Any] = info.cls
    tag = ["schema"] if issubclass(cls, Result) else []
    omits, nothing = issubclass(cls, msgspec.Struct) and cls.__struct_config__.omit_defaults, msgspec.NODEFAULT
    always = (
        field.encode_name
        for field in info.fields
        if field.required
        or not (omits or (field.default is nothing and field.default_factory is nothing))  # else it is UNSET
    )
    return [*tag, *always]


def _objects(
    types: Sequence[msgspec.inspect.Type],
) -> Iterator[msgspec.inspect.StructType | msgspec.inspect.DataclassType]:
    """Yield the classes of objects among types and in what these hold, each once."""
    seen, left = set[type](), list[Any](types)
    while left:
        each = left.pop()
        if isinstance(each, (msgspec.inspect.StructType, msgspec.inspect.DataclassType)):
            if each.cls in seen:
                continue
            seen.add(each.cls)
            yield each
        if isinstance(each, tuple):
            left += each
        elif isinstance(each, msgspec.Struct):
            left += (getattr(each, name) for name in each.__struct_fields__)
