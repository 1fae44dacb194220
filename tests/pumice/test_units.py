"""Amounts as people write them."""

from __future__ import annotations

import pytest

from pumice.units import amount, short_quantity


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 1500.0, "1.5 cpu"),
        ("cpu", 2000.0, "2 cpu"),
        ("memory", 8 * 2.0**30, "8Gi memory"),
        ("nvidia.com/gpu", 2000.0, "2 nvidia.com/gpu"),
        ("cpu", 230_400.0, "230.4 cpu"),
        ("cpu", 400.0, "400m cpu"),
        ("memory", 6.44e13, "58.6Ti memory"),
        ("pods", 3.0, "3 pods"),
        ("pods", 1.0, "1 pod"),
        ("attachable-volumes-csi-csi.example.com", 3.0, "3 attachable-volumes-csi-csi.example.com"),
    ],
)
def test_amounts_are_in_the_units_of_their_resource(resource: str, value: float, text: str) -> None:
    assert amount(resource, value) == text


@pytest.mark.parametrize(("text", "short"), [("233800m", "233.8"), ("4000m", "4"), ("400m", "400m"), ("58Ti", "58Ti")])
def test_quantities_of_whole_units_are_decimal(text: str, short: str) -> None:
    assert short_quantity(text) == short
