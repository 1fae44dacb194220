"""Volumes as a resource: claims ask for one of their driver's, nodes have what their CSINode says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.objects.metadata import Object
from pumice.core.state.view import View
from pumice.core.state.volumes import VolumeRules, attach_limit_key, volume_rules
from tests.core.plugins.world import configuration, view_of
from tests.kit import node, pod
from tests.kit.storage import claim, csi_node, local_class, storage_class, using, volume, with_ephemeral

CSI = "attachable-volumes-csi-csi.example.com"
LOCAL = "attachable-volumes-csi-kubernetes.io/no-provisioner"
CLOUD = storage_class("cloud")


def cloud_node(most: int | None = None) -> Object:
    return csi_node("n0", "csi.example.com", most=most)


def asked(view: View, name: str = "p") -> dict[str, float]:
    """What a pod asks for of volumes as the next snapshot has it."""
    view.snapshot()
    assert view.check() == []
    scalars = view.tasks.by_key[f"default/{name}"].template.request.scalars or {}
    return {key: amount for key, amount in scalars.items() if key.startswith("attachable")}


def has(view: View, name: str = "n0") -> dict[str, float]:
    view.snapshot()
    scalars = view.nodes.specs[view.nodes.row[name]].allocatable.scalars or {}
    return {key: amount for key, amount in scalars.items() if key.startswith("attachable")}


def test_each_claim_asks_for_one_of_its_driver() -> None:
    claims = [claim("a", cls="cloud"), claim("b", cls="cloud"), claim("c"), claim("d", cls="none")]
    view = view_of(CLOUD, local_class(), *claims, using(pod("p"), "a", "b", "c", "d"), pod("q"))
    assert asked(view) == {CSI: 2.0, LOCAL: 1.0}
    assert asked(view, "q") == {}


def test_a_claim_that_two_volumes_of_a_pod_name_counts_twice_and_goes_with_the_pod() -> None:
    """So count Volcano's getPodCSIVolumes; Kubernetes allows it."""
    both = using(pod("p"), "a", "a")
    view = view_of(CLOUD, claim("a", cls="cloud"), both)
    assert asked(view) == {CSI: 2.0}
    view.apply("DELETED", both)
    view.apply("MODIFIED", claim("a", cls="none"))
    view.snapshot()
    assert view.check() == []


def test_the_driver_of_a_volume_comes_before_that_of_its_class() -> None:
    other: Object = {"csi": {"driver": "other.example.com", "volumeHandle": "h"}}
    claims = [claim("a", cls="cloud", volumeName="v"), claim("b", cls="cloud", volumeName="w")]
    view = view_of(CLOUD, volume("v", cls="cloud", **other), volume("w", cls="cloud"), *claims)
    view.apply("ADDED", using(pod("p"), "a"))
    view.apply("ADDED", using(pod("q"), "b"))
    assert asked(view) == {"attachable-volumes-csi-other.example.com": 1.0}
    assert asked(view, "q") == {}  # a volume that no CSI driver has


def test_the_parameter_of_a_class_names_the_driver() -> None:
    named = storage_class("cloud", parameters={"csi.storage.k8s.io/csi-driver-name": "named.example.com"})
    view = view_of(named, claim("a", cls="cloud"), using(pod("p"), "a"))
    assert asked(view) == {"attachable-volumes-csi-named.example.com": 1.0}


def test_the_count_follows_what_comes_later_and_goes() -> None:
    view = view_of(using(pod("p", node="n0"), "a"), node("n0"))
    assert asked(view) == {}
    view.apply("ADDED", claim("a", cls="cloud"))
    assert asked(view) == {}
    view.apply("ADDED", CLOUD)
    assert asked(view) == {CSI: 1.0}
    view.apply("ADDED", volume("v", cls="cloud"))
    view.apply("MODIFIED", claim("a", cls="cloud", volumeName="v"))
    assert asked(view) == {}
    view.apply("DELETED", volume("v", cls="cloud"))
    assert asked(view) == {CSI: 1.0}
    view.apply("DELETED", claim("a", cls="cloud"))
    assert asked(view) == {}


def test_a_pod_that_comes_or_changes_once_the_rules_are_known_asks_immediately() -> None:
    view = view_of(CLOUD, claim("a", cls="cloud"))
    view.snapshot()
    for event, labels in (("ADDED", None), ("MODIFIED", {"touched": "yes"})):
        view.apply(event, using(pod("p", labels=labels), "a"))
        assert asked(view) == {CSI: 1.0}


def test_nothing_counts_while_one_claim_is_missing() -> None:
    view = view_of(CLOUD, claim("a", cls="cloud"), using(pod("p"), "a", "b"))
    assert asked(view) == {}
    view.apply("ADDED", claim("b", cls="cloud"))
    assert asked(view) == {CSI: 2.0}


@pytest.mark.parametrize(("owner", "counts"), [("p", {CSI: 1.0}), ("another", {})])
def test_the_claim_of_an_ephemeral_volume_counts_if_it_was_made_for_the_pod(
    owner: str, counts: dict[str, float]
) -> None:
    made = claim("p-scratch", cls="cloud")
    made["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "p", "uid": owner, "controller": True}]
    assert asked(view_of(CLOUD, made, with_ephemeral(pod("p", uid="p"), "scratch"))) == counts


@pytest.mark.parametrize(("most", "amount"), [(3, 3.0), (0, 0.0), (None, float(2**31 - 1))])
def test_a_node_has_what_its_csi_node_says(most: int | None, amount: float) -> None:
    view = view_of(cloud_node(most), node("n0"), node("n1"))
    assert has(view) == {CSI: amount}
    assert has(view, "n1") == {}


def test_a_node_follows_its_csi_node() -> None:
    view = view_of(node("n0"))
    view.snapshot()
    view.apply("ADDED", cloud_node(2))
    assert has(view) == {CSI: 2.0}
    view.apply("MODIFIED", node("n0"))
    assert has(view) == {CSI: 2.0}
    view.apply("DELETED", cloud_node(2))
    assert has(view) == {}


def test_some_provisioners_count_nothing() -> None:
    usual = storage_class("here", provisioner="rancher.io/local-path")
    view = view_of(CLOUD, usual, claim("a", cls="cloud"), claim("b", cls="here"), using(pod("p"), "a", "b"))
    assert asked(view) == {CSI: 1.0}
    rules = volume_rules(configuration([]), ["csi.example.com"])
    view.snapshot(rules)
    assert view.tasks.by_key["default/p"].template.request.scalars == {"pods": 1.0}


def test_the_rules_may_change_from_snapshot_to_snapshot() -> None:
    view = view_of(CLOUD, cloud_node(), node("n0"), claim("a", cls="cloud"), using(pod("p", node="n0"), "a"))
    plain = volume_rules(configuration([], fix=["volumes-are-no-resource"]))
    assert plain == VolumeRules(counted=False)
    for _ in range(2):
        assert has(view) == {CSI: float(2**31 - 1)}
        assert asked(view) == {CSI: 1.0}
        view.snapshot(plain)
        assert view.check() == []
        assert "attachable" not in str(view.nodes.specs[0].allocatable.scalars)
        assert view.tasks.by_key["default/p"].template.request.scalars == {"pods": 1.0}


def test_oversubscription_is_read_anew_by_the_rules_of_each_snapshot() -> None:
    view = view_of(node("n0", cpu="1", annotations={"volcano.sh/oversubscription-cpu": " 500"}))
    former = volume_rules(configuration([], fix=["fractions-as-python-reads-them"]))
    for _ in range(2):
        view.snapshot(volume_rules(configuration([])))
        assert view.nodes.specs[0].allocatable.milli_cpu == 1000
        view.snapshot(former)
        assert view.nodes.specs[0].allocatable.milli_cpu == 1500
        assert view.check() == []


def test_a_long_name_is_cut_and_hashed() -> None:
    assert attach_limit_key("d" * 39) == "attachable-volumes-csi-" + "d" * 39
    long = attach_limit_key("driver-with-a-very-long-name.storage.example.com")
    assert long == "attachable-volumes-csi-driver-with-a-very-long" + long[-16:]


@given(st.text("ab.", max_size=80), st.text("ab.", max_size=80))
def test_every_driver_has_a_resource_of_its_own_whose_name_is_short(one: str, other: str) -> None:
    """Of less than 63 letters, as Kubernetes limits it (ResourceNameLengthLimit)."""
    keys = {driver: attach_limit_key(driver) for driver in (one, other, "d" * 39, "d" * 40)}
    assert all(len(key) < 63 for key in keys.values())
    assert len({*keys.values()}) == len(keys)
