"""The first field of an object whose JSON type is not that of its kind's schema: one wrong field would break every
reader of the kind, so such an object is refused.

Fields that the schema does not describe may hold anything. Of a kind without a schema only the metadata is known.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from pumice.cluster.api.kinds import KINDS
from pumice.cluster.api.refusals import Cause
from pumice.cluster.api.schema.compiled import PATTERNS, type_of_kind
from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import Object
from pumice.core.quantity import quantity_of

NAMES: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
FORM: Final = "Expected `str` matching regex "
FORMS: Final = {"time": "a time like 2026-01-02T03:04:05Z", "base64": "a text in base64"}
LONGEST: Final = 40
"""So much of a text is shown."""
MOST_DIGITS: Final = 18
"""So many fit into 64 bits, whatever they are."""
_EXPECTED: Final = re.compile(r"Expected `([a-z]+)(?: \| null)?`((?: [<>]=? \S+)?)(?:, got `[a-z]+`)?")
_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def in_words(problem: str, place: str, obj: Any) -> tuple[str, str]:
    """Return where a value is wrong ("spec.tasks[0].replicas"), and what was expected and what was there, from what
    msgspec says of it.
    """
    if problem.startswith(FORM):
        return _of_wrong_form(problem.removeprefix(FORM), place, obj)
    match = _EXPECTED.fullmatch(problem)
    if match is None:
        return place, problem.replace("`", "")
    expected = f"expected {NAMES.get(match[1], match[1])}{match[2]}"
    try:
        place = _with_key(place, obj, match[1])
        return place, f"{expected}, was {_described(_at(place, obj))}"
    except LookupError:  # of a key's value only the mapping is known
        return place, expected


_JSON_TYPES: Final[dict[str, type]] = {"str": str, "int": int, "bool": bool, "array": list, "object": dict}


def _with_key(place: str, obj: Any, expected: str) -> str:
    """Return the place with the key of the first value of another type, where msgspec names the mapping only."""
    if not place.endswith("[...]") or expected not in _JSON_TYPES:
        return place
    held = _at(place.removesuffix("[...]"), obj)
    wrong = [key for key, value in held.items() if not isinstance(value, _JSON_TYPES[expected])]
    return place.replace("[...]", f"[{wrong[0]}]") if wrong else place


def _of_wrong_form(pattern: str, place: str, obj: Any) -> tuple[str, str]:
    name = next((name for name, known in PATTERNS.items() if repr(known)[1:-1] in pattern), "text")
    if place.endswith("[...]"):
        held = _at(place.removesuffix("[...]"), obj)
        key = next(key for key, value in held.items() if re.match(PATTERNS[name], str(value)) is None)
        place = place.replace("[...]", f"[{key}]")
        value = held[key]
    else:
        value = _at(place, obj)
    if name == "quantity":
        return place, f"{_described(value)}: {_problem_of(value)}"
    return place, f"expected {FORMS[name]}, was {_described(value)}"


def _problem_of(value: Any) -> str:
    try:
        return str(quantity_of(value))
    except QuantityError as error:
        return error.problem


def _at(place: str, obj: Any) -> Any:
    for key, number in _STEP.findall(place):
        if number == "...":
            raise LookupError(place)
        obj = obj[int(number)] if number else obj[key]
    return obj


def _described(value: object) -> str:
    if isinstance(value, float) and abs(value) >= 2**63:
        return "a number of more than 64 bits"
    if isinstance(value, str):
        bare = value.lstrip("+-")
        long = bare.isdigit() and len(bare) > MOST_DIGITS
        return "a number of more than 64 bits" if long else repr(value[:LONGEST]) + "…" * (len(value) > LONGEST)
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool) or value is None:
        return {"True": "true", "False": "false"}.get(str(value), "null")
    return str(value)


_PLACE: Final = re.compile(r"(.*?)(?: - at `(?:key in )?\$\.?(.*)`)?", re.DOTALL)


def type_problems(group: str, version: str, kind: str, obj: Object) -> list[Cause]:
    """Return the first field of the wrong type, as a cause, or nothing."""
    try:
        msgspec.convert(obj, type_of_kind(group, version, kind))
    except msgspec.ValidationError as error:
        match = _PLACE.fullmatch(str(error))
        problem, place = (match[1], match[2] or "") if match else (str(error), "")
        place, words = in_words(problem, place, obj)
        return [Cause(place or "metadata", "FieldValueTypeInvalid", f"Invalid value: {words}")]
    return []


def key_problems(key: str, obj: Object) -> list[Cause]:
    """Return `type_problems` of an object of the kind that is stored by that key."""
    kind = KINDS.get(key)
    return type_problems("", "", key, obj) if kind is None else type_problems(kind.group, kind.version, kind.kind, obj)


def status_problems(key: str, status: Any) -> list[Cause]:
    """Return `type_problems` of an object's status alone."""
    return key_problems(key, {"metadata": {}, "spec": {}, "status": status})
