"""Amounts that go into columns come back from them."""

from __future__ import annotations

from pumice.core.resources import Resource
from pumice.core.state.dimensions import Dimensions


def test_amounts_of_all_kinds_come_back_and_what_is_not_there_is_not_named() -> None:
    dimensions, held = Dimensions(), Resource(1500.0, 2048.0, {"pods": 3.0, "nvidia.com/gpu": 2000.0})
    dimensions.index("vendor/other")
    column = [0.0] * (len(dimensions) + 1)
    for row, value in dimensions.items(held):
        column[row] = value
    assert dimensions.resource(column) == held
