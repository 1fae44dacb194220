"""What an extender answers, read as Go decodes JSON into Volcano's structs, and in Go's words where it cannot be read.

Go takes field names in any case, leaves out what it does not know and what is null, and reads no further than the end
of the first value.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pumice.core.outside import SUPPOSED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.messages.questions import OutsideAnswer

OK: Final = 200
BODY_LIMIT: Final = 10 << 20


class ExtenderError(Exception):
    """There is no answer to go by; in Go's words."""


class ReplyShape(NamedTuple):
    """A struct of the answer: its name, and the fields with their Go types. `agreed`: what it says who has no objection
    and no wish.
    """

    name: str
    fields: Mapping[str, str]
    agreed: Mapping[str, Any] = MappingProxyType({})


PREDICATE: Final = ReplyShape("PredicateResponse", {"status": "string", "code": "int"})
PRIORITIZE: Final = ReplyShape(
    "PrioritizeResponse", {"nodeScore": "map[string]float64", "errorMessage": "string"}, {"nodeScore": {}}
)
VICTIMS: Final = ReplyShape("PreemptableResponse", {"status": "int", "victims": "[]*api.TaskInfo"})
RECLAIMED: Final = ReplyShape("ReclaimableResponse", VICTIMS.fields)
ENQUEUEABLE: Final = ReplyShape("JobEnqueueableResponse", {"status": "int"})
OVERUSED: Final = ReplyShape("QueueOverusedResponse", {"overused": "bool"})
READY: Final = ReplyShape("JobReadyResponse", {"status": "bool"}, {"status": True})
EVENT: Final = ReplyShape("EventHandlerResponse", {"errorMessage": "string"})

_LITERAL: Final = {"f": "false", "n": "null", "t": "true"}
_NAMES: Final[dict[type, str]] = {str: "string", bool: "bool", int: "number", float: "number", list: "array"}
_TAKES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "int": (int,),
    "bool": (bool,),
    "map[string]float64": (dict,),
    "[]*api.TaskInfo": (list,),
}


def read_answer(answer: OutsideAnswer, verb: str, url: str, shape: ReplyShape | None) -> dict[str, Any]:
    """The fields that the answer has, by their names in `shape` (None: nobody reads what is said). Raises
    ExtenderError.
    """
    if answer == SUPPOSED:
        return {} if shape is None else dict(shape.agreed)
    if answer.error:
        raise ExtenderError(answer.error)
    if answer.code != OK:
        raise ExtenderError(f"failed {verb} with extender at URL {url}, code {answer.code}")
    if shape is None:
        return {}
    if len(answer.body) > BODY_LIMIT:
        raise ExtenderError("http: request body too large")
    value = _first_value(answer.body.decode("utf-8", "replace").lstrip(" \t\r\n"))
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ExtenderError(f"json: cannot unmarshal {_name(value)} into Go value of type extender.{shape.name}")
    found: dict[str, Any] = {}
    for said, each in cast("dict[str, Any]", value).items():
        field = _field(said, shape)
        if field is not None and each is not None:
            found[field] = _checked(each, shape, field)
    return found


def _field(said: str, shape: ReplyShape) -> str | None:
    if said in shape.fields:
        return said
    return next((field for field in shape.fields if field.lower() == said.lower()), None)


def _first_value(text: str) -> Any:
    if not text:
        raise ExtenderError("EOF")
    try:
        return json.JSONDecoder(parse_constant=_no_constant).raw_decode(text)[0]
    except (ValueError, RecursionError):
        raise ExtenderError(_words(text)) from None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _words(text: str) -> str:
    """What Go says of a text that is no JSON, as far as its first character tells."""
    first = text[0]
    if first in _LITERAL or first in '{["-0123456789':
        return "unexpected EOF" if first not in _LITERAL or _LITERAL[first].startswith(text) else _inside(text)
    return f"invalid character {_quoted(first)} looking for beginning of value"


def _inside(text: str) -> str:
    word = _LITERAL[text[0]]
    place = next(i for i, (said, meant) in enumerate(zip(text, word, strict=False)) if said != meant)
    return f"invalid character {_quoted(text[place])} in literal {word} (expecting {_quoted(word[place])})"


def _quoted(character: str) -> str:
    return f"'{character}'" if character not in "'\\" else f"'\\{character}'"


def _name(value: object) -> str:
    return _NAMES.get(type(value), "object")


def _checked(value: Any, shape: ReplyShape, field: str) -> Any:
    kind = shape.fields[field]
    misplaced = isinstance(value, bool) and kind != "bool"
    if misplaced or not isinstance(value, _TAKES[kind]):
        raise _mismatch(value, shape, field, kind)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise _mismatch(value, shape, field, kind)
    if isinstance(value, dict):
        scores = cast("dict[str, Any]", value)
        return {name: _score(each, shape, field) for name, each in scores.items() if each is not None}
    return value


def _score(value: Any, shape: ReplyShape, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _mismatch(value, shape, field, "float64")
    try:
        score = float(value)
    except OverflowError:
        score = float("inf")
    if score - score != 0.0:
        raise ExtenderError(f"json: cannot unmarshal number into Go struct field {shape.name}.{field} of type float64")
    return score


def _mismatch(value: object, shape: ReplyShape, field: str, kind: str) -> ExtenderError:
    said = _name(value)
    if said == "number" and kind == "int":
        said = f"number {value}"
    return ExtenderError(f"json: cannot unmarshal {said} into Go struct field {shape.name}.{field} of type {kind}")
