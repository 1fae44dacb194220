"""Values as types of msgspec's: what is wrong is told with its place, what was expected and what was found."""

from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct, field

from pumice.config.errors import ConfigError
from pumice.config.read import ValuePlace, shaped
from pumice.config.yaml_tree import Document

Share = Annotated[float, Meta(ge=0, le=1, description="a share from 0 to 1")]


class Hour:
    """Of a day."""


def read_hour(kind: type, found: Any) -> Hour:
    assert kind is Hour
    if found not in range(24):
        raise ValueError("an hour from 0 to 23")
    return Hour()


class Inner(Struct, forbid_unknown_fields=True, rename={"at_most": "at-most"}):
    rates: dict[str, Share] = field(default_factory=dict[str, float])
    at_most: Annotated[int, Meta(le=9)] | None = None
    hours: tuple[Hour, ...] = ()


class Outer(Struct, forbid_unknown_fields=True):
    name: str
    inner: list[Inner] = field(default_factory=list[Inner])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (7, "top: expected a mapping, was 7"),
        ({}, "top.name: expected a text, was nothing"),
        ({"name": ["x"]}, "top.name: expected a text, was a list"),
        ({"name": "x", "iner": []}, "top.iner: unknown key 'iner', did you mean 'inner'?"),
        ({"name": "x", "inner": {}}, "top.inner: expected a list, was a mapping"),
        ({"name": "x", "inner": [{}, {"x": 1}]}, "top.inner[1].x: unknown key 'x'; known: at-most, hours, rates"),
        (
            {"name": "x", "inner": [{"rates": {"a": 1, "b.c": 2}}]},
            "top.inner[0].rates[b.c]: expected a share from 0 to 1, was 2",
        ),
        ({"name": "x", "inner": [{"at-most": 10}]}, "top.inner[0].at-most: expected a whole number <= 9, was 10"),
        ({"name": "x", "inner": [{"at-most": ""}]}, "top.inner[0].at-most: expected a whole number or nothing, was ''"),
        ({"name": "x", "inner": [{"hours": [1, 24]}]}, "top.inner[0].hours[1]: expected an hour from 0 to 23, was 24"),
    ],
)
def test_a_misshapen_value_is_told_with_its_place(value: object, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        shaped(ValuePlace(Document("", None), ("top",)), value, Outer, read_hour)
    assert str(error.value) == words


def test_a_value_of_the_shape_is_converted() -> None:
    found = shaped(ValuePlace(Document("", None)), {"name": "x", "inner": [{"hours": [3]}]}, Outer, read_hour)
    assert (found.name, len(found.inner[0].hours)) == ("x", 1)
