"""Whether a case has the shape of one, before anything else looks at it."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

Outcomes = list[dict[str, Any]]
Objects = list[dict[str, Any]]


class _Expect(Struct):
    cycles: Outcomes | None = None
    anyOf: Annotated[list[Outcomes], Meta(min_length=1)] | None = None  # noqa: N815 - as the files have it
    atOpen: dict[str, Any] | None = None  # noqa: N815


class _Documented(Struct):
    name: str
    objects: Objects
    documentedOrder: dict[str, Any]  # noqa: N815
    expect: dict[str, Any]


class _Story(Struct):
    name: str
    objects: Objects
    expect: _Expect
    cycles: Annotated[int, Meta(ge=1)] = 1
    documentedOrder: UnsetType = UNSET  # noqa: N815


def name_of(case: object, number: int) -> str:
    """Of a case of a suite; by its number from 1 where it has no name."""
    name = case.get("name") if isinstance(case, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return name if isinstance(name, str) else f"case {number}"


def misshapen(case: object) -> str:
    """What is not as it must be, with its place; "" for a case that can be judged."""
    documented = isinstance(case, dict) and "documentedOrder" in case
    try:
        found = msgspec.convert(case, _Documented if documented else _Story)
    except msgspec.ValidationError as error:
        return str(error)
    return _counted(found) if isinstance(found, _Story) else ""


def _counted(story: _Story) -> str:
    """Every story that is expected must be as long as the one that is told."""
    expect = story.expect
    if expect.cycles is None and expect.anyOf is None:
        return "expect: expected cycles or anyOf, found neither"
    stories = [("expect.cycles", expect.cycles or [])] if expect.anyOf is None else []
    stories += [(f"expect.anyOf[{number}]", one) for number, one in enumerate(expect.anyOf or ())]
    wrong = [
        f"{where}: expected {story.cycles} outcomes (cycles: {story.cycles}), found {len(one)}"
        for where, one in stories
        if len(one) != story.cycles
    ]
    return "; ".join(wrong)
