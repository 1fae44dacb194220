"""Specs that are settled once for many pods, which share them: whoever writes into one does so into a copy of it."""

from __future__ import annotations

from typing import Any

from pumice.cluster.api.admission.limit_ranges import own_copy, problems, settled
from pumice.cluster.api.admission.pod_spec import default_pod_spec, pod_spec_problems
from pumice.cluster.kube.quota_usage import qos_class
from pumice.storage.codec import pack, unpack
from tests.actors.cluster import Cluster
from tests.kit.pods import pod


def spec_of(cpu: Any = 1, **more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "resources": {"limits": {"cpu": cpu, "memory": "1Gi"}}}], **more}


def test_it_is_what_defaults_make_of_it_every_time() -> None:
    specs: list[dict[str, Any]] = [
        spec_of(),
        spec_of(),
        spec_of("2"),
        spec_of(restartPolicy="Never"),
        {"containers": []},
        {},
    ]
    for spec in specs:
        given, service = settled(spec)
        default_pod_spec(spec)
        assert (given, service) == (spec, qos_class(spec))


def test_pods_alike_share_their_spec() -> None:
    cluster = Cluster()
    blobs = [pack(cluster.create(pod(name, cpu="3"))) for name in ("a", "b")]
    first, second = [cluster.objects.unpack(blob) for blob in blobs]
    assert first["spec"] is second["spec"]
    assert first["spec"] == unpack(blobs[1])["spec"]


def test_what_a_copy_is_changed_to_is_not_seen_by_others() -> None:
    first, _ = settled(spec_of())
    own_copy(first)["containers"][0]["resources"]["requests"]["cpu"] = "7"
    assert first["containers"][0]["resources"]["requests"]["cpu"] == "1"


def test_what_a_namespaces_ranges_give_to_a_pod_is_not_seen_by_the_next() -> None:
    cluster = Cluster()
    item = {"type": "Container", "default": {"cpu": "2"}}
    meta = {"name": "limits", "namespace": "default"}
    cluster.create({"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": [item]}})
    assert "limits" in cluster.create(pod("a"))["spec"]["containers"][0]["resources"]
    cluster.delete("LimitRange", "limits")
    assert "limits" not in cluster.create(pod("b"))["spec"]["containers"][0]["resources"]


def test_a_pods_own_labels_in_its_terms_are_not_seen_by_the_next() -> None:
    cluster = Cluster()
    selector = {"matchLabels": {"app": "web"}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector, "matchLabelKeys": ["version"]}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for version in ("7", "8"):
        made = cluster.create(pod(f"p{version}", labels={"version": version}, affinity=affinity))
        (settled_term,) = made["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (expression,) = settled_term["labelSelector"]["matchExpressions"]
        assert expression["values"] == [version]


def test_problems_are_found_every_time_and_belong_to_the_asker() -> None:
    wrong = spec_of(restartPolicy="Sometimes")
    expected = pod_spec_problems(wrong, "spec")
    assert expected
    problems(wrong).clear()
    assert problems(wrong) == expected
    assert problems(spec_of()) == []
