"""Parts of objects that are written under a path of their own: added containers, and what is decided of requests."""

from base64 import b64encode
from typing import Any

import pytest

from pumice.core.messages.commands import Create, Patch, Update
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack, unpack
from tests.actors.cluster import Cluster
from tests.kit.certificates import PEM, certificate_request
from tests.kit.pods import pod

CSR = "CertificateSigningRequest"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.served()


def why(reply: ApiReply) -> str:
    assert isinstance(reply, Refused), reply
    assert reply.code == 422
    return reply.message


def add(cluster: Cluster, *containers: Object, form: str = "strategic", **more: Any) -> ApiReply:
    patch = pack({"spec": {"ephemeralContainers": list(containers)}, **more})
    return cluster.ask(Patch("Pod", "default", "p", patch, form=form, subresource="ephemeralcontainers"))


def test_a_pod_gets_further_containers_and_nothing_else_changes(cluster: Cluster) -> None:
    before = cluster.create(pod("p"))
    target = before["spec"]["containers"][0]["name"]
    reply = add(
        cluster,
        {"name": "a", "image": "busybox", "targetContainerName": target},
        metadata={"labels": {"x": "y"}},
        status={"phase": "Failed"},
    )
    assert isinstance(reply, Accepted)
    after = cluster.get("Pod", "p")
    (added,) = after["spec"].pop("ephemeralContainers")
    assert (added["name"], added["imagePullPolicy"]) == ("a", "IfNotPresent")
    assert (after["spec"], after["status"]) == (before["spec"], before["status"])
    assert "labels" not in after["metadata"]
    assert isinstance(add(cluster, {"name": "b", "image": "i"}), Accepted)
    assert [each["name"] for each in cluster.get("Pod", "p")["spec"]["ephemeralContainers"]] == ["b", "a"]


def test_an_added_container_is_a_sound_one_and_stays(cluster: Cluster) -> None:
    own = cluster.create(pod("p"))["spec"]["containers"][0]["name"]
    assert isinstance(add(cluster, {"name": "a", "image": "i"}), Accepted)
    assert "may not be changed" in why(add(cluster, {"name": "a", "image": "other"}))
    assert "may not be removed" in why(add(cluster, form="merge"))
    assert "Duplicate value" in why(add(cluster, {"name": own, "image": "i"}))
    assert 'targetContainerName: Not found: "x"' in why(
        add(cluster, {"name": "b", "image": "i", "targetContainerName": "x"})
    )
    assert "ports: Forbidden" in why(add(cluster, {"name": "b", "image": "i", "ports": [{"containerPort": 1}]}))
    assert "image: Required" in why(add(cluster, {"name": "b"}))
    assert "spec: Forbidden" in why(cluster.patch("Pod", "p", {"spec": {"ephemeralContainers": []}}))
    born = pod("q")
    born["spec"]["ephemeralContainers"] = [{"name": "a", "image": "i"}]
    assert "cannot be set on create" in cluster.refused(born).message


def decide(cluster: Cluster, *kinds: str, under: str = "approval", **status: Any) -> ApiReply:
    conditions = [{"type": kind, "status": "True", "reason": "R"} for kind in kinds]
    given = cluster.get(CSR, "r", "")
    given["status"] = {"conditions": conditions, **status}
    return cluster.ask(Update(pack(given), subresource=under))


def test_who_asks_is_known_and_nobody_has_decided(cluster: Cluster) -> None:
    made = cluster.create({**certificate_request(), "status": {"certificate": "YQ=="}})
    assert (made["spec"]["username"], made["status"]) == ("pumice:admin", {})
    assert isinstance(cluster.patch(CSR, "r", {"spec": {"signerName": "other.io/z"}}, ""), Accepted)
    assert cluster.get(CSR, "r", "")["spec"]["signerName"] == "x.io/y", "what was asked for stays"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"request": b64encode(b"abc").decode()}, "PEM block type must be CERTIFICATE REQUEST"),
        ({"request": b64encode(PEM.replace("MAMCAQA=", "MAUCAQA=").encode()).decode()}, "holds no certificate request"),
        ({"usages": []}, "spec.usages: Required"),
        ({"usages": ["flying"]}, 'spec.usages[0]: Unsupported value: "flying"'),
        ({"usages": ["any", "any"]}, "spec.usages[1]: Duplicate value"),
        ({"signerName": "me"}, "must be a fully qualified domain and path"),
        ({"signerName": "me/x"}, "a domain with at least two segments"),
        ({"signerName": "kubernetes.io/legacy-unknown"}, "legacy"),
        ({"expirationSeconds": 5}, "less than 600 seconds"),
    ],
)
def test_a_request_is_a_sound_one(cluster: Cluster, spec: Object, told: str) -> None:
    assert told in why(cluster.ask(Create(pack(certificate_request(**spec)))))


def test_it_is_approved_under_a_path_of_its_own(cluster: Cluster) -> None:
    cluster.create(certificate_request())
    assert 'may not add a condition of type "Approved"' in why(decide(cluster, "Approved", under="status"))
    assert "mutually exclusive" in why(decide(cluster, "Approved", "Denied"))
    reply = decide(cluster, "Approved", certificate="YQ==")
    assert isinstance(reply, Accepted)
    status = unpack(reply.blob)["status"]
    assert "certificate" not in status, "who approves does not sign"
    (approved,) = status["conditions"]
    assert approved["lastUpdateTime"] == approved["lastTransitionTime"] == "2023-11-14T22:13:20Z"
    assert "may not remove" in why(decide(cluster))


def test_it_is_signed_once(cluster: Cluster) -> None:
    cluster.create(certificate_request())
    decide(cluster, "Approved")
    assert isinstance(decide(cluster, "Approved", under="status", certificate="YQ=="), Accepted)
    assert cluster.get(CSR, "r", "")["status"]["certificate"] == "YQ=="
    assert "may not modify existing certificate" in why(decide(cluster, "Approved", under="status", certificate="Yg=="))
    approved = cluster.get(CSR, "r", "")["status"]["conditions"]
    cluster.status(CSR, "r", {"conditions": approved}, "")
    assert isinstance(decide(cluster, "Approved", "Failed", under="status", certificate="YQ=="), Accepted)
