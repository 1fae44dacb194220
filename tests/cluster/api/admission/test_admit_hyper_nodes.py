"""HyperNodes without members, chosen in two ways or by no pattern are refused."""

from typing import Any

import pytest

from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster


def hyper_node(*selectors: Object, **spec: Any) -> Object:
    members = [{"type": "Node", "selector": each} for each in selectors]
    given = {"tier": 1, **({"members": members} if members else {}), **spec}
    return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": "h"}, "spec": given}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (hyper_node(), "member must have at least one member"),
        (hyper_node({}), "Either ExactMatch or RegexMatch or LabelMatch must be specified"),
        (hyper_node({"exactMatch": {"name": "a"}, "regexMatch": {"pattern": "b"}}), "Only one of ExactMatch"),
        (hyper_node({"regexMatch": {"pattern": "a(b"}}), "member regexMatch pattern is invalid"),
        (hyper_node({"exactMatch": {"name": ""}}), "should be at least 1 chars long"),
    ],
)
def test_refused(given: Object, why: str) -> None:
    assert why in Cluster().refused(given).message


def test_one_way_each() -> None:
    ways = (
        {"exactMatch": {"name": "a"}},
        {"regexMatch": {"pattern": "a.*"}},
        {"labelMatch": {"matchLabels": {"a": "b"}}},
    )
    Cluster().create(hyper_node(*ways))
