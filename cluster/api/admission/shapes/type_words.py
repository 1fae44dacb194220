"""What is wrong with the type of a field, in the words of those who write manifests."""

from __future__ import annotations

import re
from typing import Any, Final

NAMES: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
LONGEST: Final = 40
"""So much of a text is shown."""
MOST_DIGITS: Final = 18
"""So many fit into 64 bits, whatever they are."""
_EXPECTED: Final = re.compile(r"Expected `([a-z]+)(?: \| null)?`((?: [<>]=? \S+)?)(?:, got `[a-z]+`)?")
_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def in_words(problem: str, place: str, obj: Any) -> str:
    """What msgspec says of the value at `place` ("spec.tasks[0].replicas"): what was expected, and what was there."""
    match = _EXPECTED.fullmatch(problem)
    if match is None:
        return problem.replace("`", "")
    expected = f"expected {NAMES.get(match[1], match[1])}{match[2]}"
    try:
        return f"{expected}, was {_described(_at(place, obj))}"
    except LookupError:  # of a key's value only the mapping is known
        return expected


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
