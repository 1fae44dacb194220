"""matchLabelKeys and mismatchLabelKeys of affinity terms, as admission writes them into the selectors."""

from typing import Any

from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.pods import pod

HOST = "kubernetes.io/hostname"
LABELS = {"app": "web", "version": "7"}


def term(**more: Any) -> Object:
    return {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}, **more}


def expressions(found: Object) -> list[Object]:
    listed: list[Object] = found["labelSelector"].get("matchExpressions", [])
    return listed


def test_the_pods_own_values_become_part_of_the_selector() -> None:
    must = term(matchLabelKeys=["version", "absent"], mismatchLabelKeys=["app"])
    may = {"weight": 5, "podAffinityTerm": term(matchLabelKeys=["version"])}
    affinity = {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [must]},
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [may]},
    }
    stored = Cluster().create(pod("p", labels=LABELS, affinity=affinity))["spec"]["affinity"]
    (required,) = stored["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert expressions(required) == [
        {"key": "version", "operator": "In", "values": ["7"]},
        {"key": "app", "operator": "NotIn", "values": ["web"]},
    ]
    (preferred,) = stored["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert expressions(preferred["podAffinityTerm"]) == [{"key": "version", "operator": "In", "values": ["7"]}]


def test_what_is_there_already_is_not_added_again_and_no_selector_stays_none() -> None:
    known = {"key": "version", "operator": "In", "values": ["7"]}
    merged = term(matchLabelKeys=["version"], labelSelector={"matchExpressions": [known]})
    bare = {"topologyKey": HOST, "matchLabelKeys": ["version"]}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [merged, bare]}}
    stored = Cluster().create(pod("p", labels=LABELS, affinity=affinity))["spec"]["affinity"]["podAffinity"]
    first, second = stored["requiredDuringSchedulingIgnoredDuringExecution"]
    assert expressions(first) == [known]
    assert "labelSelector" not in second


def test_keys_that_are_no_list_of_text_are_refused() -> None:
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(matchLabelKeys=[7])]}}
    assert Cluster().refused(pod("p", labels=LABELS, affinity=affinity)).code == 422
