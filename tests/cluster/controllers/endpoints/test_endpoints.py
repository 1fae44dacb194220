"""A Service has an address of its own, and behind it the pods that it selects."""

from typing import Any

from pumice.cluster.api.bootstrap import api_moved, api_service
from pumice.cluster.controllers.endpoints import EndpointsMachine
from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.cluster.kubelets.node_reports import ClusterAddresses, OtherAgents
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.nodes import node
from tests.kit.pods import pod


def service(name: str, **spec: Any) -> Object:
    ports = [{"port": 80, "targetPort": 8080}]
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": ports, **spec}}


def a_cluster() -> Cluster:
    agents = NodeAgentsMachine(addresses=ClusterAddresses(), others=OtherAgents())
    cluster = Cluster(agents, EndpointsMachine())
    cluster.create(node("n1"))
    return cluster


def runs(cluster: Cluster, name: str, **labels: str) -> Object:
    cluster.create(pod(name, labels=labels, duration="0"))
    cluster.bind(name, "n1")
    cluster.settle()
    return cluster.get("Pod", name)


def addresses(cluster: Cluster, name: str) -> list[str]:
    subsets: list[Object] = cluster.get("Endpoints", name).get("subsets") or []
    return [each["ip"] for subset in subsets for each in subset.get("addresses", ())]


def test_services_get_addresses_that_differ_and_stay() -> None:
    cluster = a_cluster()
    made = [cluster.create(service(f"s{number}"))["spec"] for number in range(50)]
    assert len({spec["clusterIP"] for spec in made}) == 50
    assert all(spec["clusterIPs"] == [spec["clusterIP"]] for spec in made)
    cluster.patch("Service", "s0", {"spec": {"clusterIP": None, "ports": [{"port": 81}]}})
    assert cluster.get("Service", "s0")["spec"]["clusterIP"] == made[0]["clusterIP"]


def test_a_node_port_is_given_once() -> None:
    cluster = a_cluster()
    first = cluster.create(service("a", type="NodePort"))["spec"]["ports"][0]["nodePort"]
    assert 30_000 <= first <= 32_767
    refused = cluster.refused(service("b", type="NodePort", ports=[{"port": 1, "nodePort": first}]))
    assert "provided port is already allocated" in refused.message


def test_ready_pods_stand_behind_their_service() -> None:
    cluster = a_cluster()
    cluster.create(service("s", selector={"app": "a"}))
    cluster.settle()
    assert addresses(cluster, "s") == []
    own = runs(cluster, "p", app="a")["status"]["podIP"]
    runs(cluster, "q", app="b")
    assert addresses(cluster, "s") == [own]
    assert cluster.get("Endpoints", "s")["subsets"][0]["ports"] == [{"port": 8080, "protocol": "TCP"}]
    (found,) = cluster.all("EndpointSlice", "kubernetes.io/service-name=s")
    assert [each["addresses"] for each in found["endpoints"]] == [[own]]
    assert found["endpoints"][0]["conditions"] == {"ready": True, "serving": True, "terminating": False}
    cluster.delete("Pod", "p", grace_s=0)
    cluster.settle()
    assert addresses(cluster, "s") == []


def test_endpoints_go_with_their_service() -> None:
    cluster = a_cluster()
    cluster.create(service("s", selector={"app": "a"}))
    cluster.settle()
    cluster.delete("Service", "s")
    cluster.settle()
    assert not cluster.exists("Endpoints", "s")
    assert cluster.all("EndpointSlice") == []


def test_a_service_without_a_selector_is_left_to_who_made_it() -> None:
    cluster = a_cluster()
    cluster.create(service("s"))
    cluster.settle()
    assert not cluster.exists("Endpoints", "s")


def test_the_api_server_stands_behind_the_service_kubernetes() -> None:
    cluster = a_cluster()
    service, endpoints, found = [cluster.create(each) for each in api_service(("127.0.0.1", 8080))]
    assert service["spec"]["clusterIP"] == "10.96.0.1"
    assert found["endpoints"][0]["addresses"] == ["127.0.0.1"]
    cluster.settle()
    assert cluster.get("Endpoints", "kubernetes") == endpoints
    cluster.restart(*cluster.machines)
    for request in api_moved(("127.0.0.1", 8081)):
        cluster.ask(request)
    assert cluster.get("Endpoints", "kubernetes")["subsets"][0]["ports"][0]["port"] == 8081


def test_no_two_pods_have_one_address_also_after_a_restart() -> None:
    cluster = a_cluster()
    before = [runs(cluster, f"p{number}")["status"]["podIP"] for number in range(20)]
    cluster.restart(NodeAgentsMachine(addresses=ClusterAddresses(), others=OtherAgents()))
    cluster.settle()
    after = [runs(cluster, f"q{number}")["status"]["podIP"] for number in range(20)]
    assert len({*before, *after}) == 40
    assert cluster.get("Pod", "p3")["status"]["podIP"] == before[3]
