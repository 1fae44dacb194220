"""Plugins of Jobs: what they add to pods, what they create beside them, and that it goes with the Job's pods."""

import json
from base64 import b64decode
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_public_key
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.controllers.jobs.plugins.plugin import with_port
from pumice.cluster.controllers.jobs.plugins.plugins import PLUGINS
from pumice.cluster.kube.go_flags import parsed_flags
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.cluster.controllers.jobs.job_cluster import phase, run, status
from tests.kit.jobs import job_task, vcjob


def made(cluster: Cluster, *tasks: Object, **plugins: list[str]) -> None:
    job = vcjob("j", *tasks)
    job["spec"]["plugins"] = plugins
    run(cluster, job)


def container(cluster: Cluster, pod: str, place: int = 0, group: str = "containers") -> Object:
    found: Object = cluster.get("Pod", pod)["spec"][group][place]
    return found


def variables(cluster: Cluster, pod: str) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container(cluster, pod).get("env") or ()}


def names(cluster: Cluster, kind: str) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.all(kind) if each["metadata"].get("ownerReferences")]


def test_svc_lets_pods_find_each_other(cluster: Cluster) -> None:
    made(cluster, job_task("a-b", replicas=2), job_task("c"), svc=[])
    data = cluster.get("ConfigMap", "j-svc")["data"]
    assert data == {
        "a_b.host": "j-a-b-0.j\nj-a-b-1.j",
        "VC_A_B_HOSTS": "j-a-b-0.j,j-a-b-1.j",
        "VC_A_B_NUM": "2",
        "c.host": "j-c-0.j",
        "VC_C_HOSTS": "j-c-0.j",
        "VC_C_NUM": "1",
    }
    service = cluster.get("Service", "j")["spec"]
    own = {"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "default"}
    assert (service["clusterIP"], service["selector"]) == ("None", own)
    rules = cluster.get("NetworkPolicy", "j")["spec"]
    assert rules["ingress"] == [{"from": [{"podSelector": {"matchLabels": own}}]}]
    pod = cluster.get("Pod", "j-a-b-1")["spec"]
    assert (pod["hostname"], pod["subdomain"]) == ("j-a-b-1", "j")
    assert variables(cluster, "j-a-b-1")["VC_C_NUM"] == {"configMapKeyRef": {"name": "j-svc", "key": "VC_C_NUM"}}
    assert container(cluster, "j-c-0")["volumeMounts"] == [{"mountPath": "/etc/volcano", "name": "j-svc"}]
    assert status(cluster)["controlledResources"] == {"plugin-svc": "svc"}


def test_svc_does_what_its_arguments_say(cluster: Cluster) -> None:
    made(cluster, job_task("a"), svc=["--publish-not-ready-addresses=true", "-disable-network-policy"])
    assert cluster.get("Service", "j")["spec"]["publishNotReadyAddresses"] is True
    assert names(cluster, "NetworkPolicy") == []


def test_the_list_of_hosts_follows_the_replicas(cluster: Cluster) -> None:
    made(cluster, job_task("a", replicas=1), svc=[])
    spec = cluster.get("Job", "j")["spec"]
    cluster.patch("Job", "j", {"spec": {"tasks": [{**spec["tasks"][0], "replicas": 3}]}})
    cluster.settle()
    assert cluster.get("ConfigMap", "j-svc")["data"]["VC_A_NUM"] == "3"


def test_what_plugins_made_goes_with_the_pods(cluster: Cluster) -> None:
    made(cluster, job_task("a", duration="5s"), svc=[], ssh=[], ray=["--head=a"])
    made_of = ("ConfigMap", "Service", "NetworkPolicy", "Secret")
    assert [names(cluster, kind) for kind in made_of] == [["j-svc"], ["j", "j-head-svc"], ["j"], ["j-ssh"]]
    cluster.advance(5)
    assert phase(cluster) == "Completed"
    assert [names(cluster, kind) for kind in made_of] == [[], [], [], []]


def test_ssh_brings_keys_that_ssh_can_read(cluster: Cluster) -> None:
    made(cluster, job_task("a", replicas=2), ssh=["--ssh-port=2222", "--ssh-key-file-path=/keys/.ssh"])
    data = {name: b64decode(text) for name, text in cluster.get("Secret", "j-ssh")["data"].items()}
    private = load_pem_private_key(data["id_rsa"], None)
    assert load_ssh_public_key(data["id_rsa.pub"]) == private.public_key()
    assert data["authorized_keys"] == data["id_rsa.pub"]
    assert data["config"].decode().splitlines()[2:5] == ["Host j-a-0", "  HostName j-a-0.j", "  Port 2222"]
    volume = cluster.get("Pod", "j-a-0")["spec"]["volumes"][0]
    assert (volume["secret"]["secretName"], volume["secret"]["defaultMode"]) == ("j-ssh", 0o644)
    mount = {"mountPath": "/keys/.ssh", "subPath": ".ssh", "name": "j-ssh"}
    assert container(cluster, "j-a-0")["volumeMounts"] == [mount]


def test_ssh_takes_the_keys_that_it_is_given(cluster: Cluster) -> None:
    made(cluster, job_task("a"), ssh=["--ssh-private-key=secret", "--ssh-public-key=known"])
    data = cluster.get("Secret", "j-ssh")["data"]
    assert (b64decode(data["id_rsa"]), b64decode(data["authorized_keys"])) == (b"secret", b"known")


def test_pytorch_says_the_rank(cluster: Cluster) -> None:
    made(cluster, job_task("master"), job_task("worker", replicas=2), pytorch=["--port=9", "--wait-master-enabled"])
    told = {"MASTER_ADDR": "j-master-0.j", "MASTER_PORT": "9", "WORLD_SIZE": "3"}
    for pod, rank in (("j-master-0", "0"), ("j-worker-0", "1"), ("j-worker-1", "2")):
        assert variables(cluster, pod).items() >= {**told, "RANK": rank}.items()
    assert container(cluster, "j-worker-0")["ports"][0]["containerPort"] == 9
    assert container(cluster, "j-worker-0", group="initContainers")["name"] == "wait-for-master"
    assert "initContainers" not in cluster.get("Pod", "j-master-0")["spec"]


def test_tensorflow_says_who_is_who(cluster: Cluster) -> None:
    made(cluster, job_task("ps"), job_task("w", replicas=2), tensorflow=["--worker=w"])
    config = json.loads(variables(cluster, "j-w-1")["TF_CONFIG"])
    hosts = {"ps": ["j-ps-0.j:2222"], "worker": ["j-w-0.j:2222", "j-w-1.j:2222"]}
    assert config == {"cluster": hosts, "task": {"type": "worker", "index": 1}}


def test_tensorflow_task_of_two_roles_is_listed_by_one_and_typed_by_the_other(cluster: Cluster) -> None:
    made(cluster, job_task("x", replicas=2), tensorflow=["--ps=x", "--worker=x"])
    config = json.loads(variables(cluster, "j-x-0")["TF_CONFIG"])
    assert config == {"cluster": {"ps": ["j-x-0.j:2222", "j-x-1.j:2222"]}, "task": {"type": "worker", "index": 0}}


def test_mpi_tells_the_master_of_its_workers(cluster: Cluster) -> None:
    made(cluster, job_task("master"), job_task("worker", replicas=2), mpi=["--port=5000"])
    assert variables(cluster, "j-master-0")["MPI_HOST"] == "j-worker-0.j,j-worker-1.j"
    assert "MPI_HOST" not in variables(cluster, "j-worker-0")
    assert container(cluster, "j-worker-0")["ports"][0]["containerPort"] == 5000
    assert names(cluster, "Secret") == ["j-ssh"], "it needs ssh"


def test_ray_starts_a_head_and_workers(cluster: Cluster) -> None:
    head, worker = job_task("head"), job_task("worker")
    for task in (head, worker):
        task["template"]["spec"]["containers"][0]["name"] = task["name"]
    made(cluster, head, worker, ray=[])
    start = "ray start --head --block --dashboard-host=0.0.0.0 --port=6379 --dashboard-port=8265"
    assert container(cluster, "j-head-0")["command"][2] == f"{start} --ray-client-server-port=10001"
    assert container(cluster, "j-worker-0")["command"][2] == "ray start --block --address=j-head-0.j:6379"
    ports = {each["name"]: each["port"] for each in cluster.get("Service", "j-head-svc")["spec"]["ports"]}
    assert ports == {"gcs": 6379, "dashboard": 8265, "client-server": 10001}
    cluster.advance(10**6)
    assert phase(cluster) == "Running"


def test_ray_without_a_head_is_given_up_with_a_word(cluster: Cluster) -> None:
    made(cluster, job_task("worker"), ray=[])
    cluster.advance(0.01)
    assert status(cluster)["state"]["message"] == "job j doesn't have head task head"
    cluster.advance(180)
    assert (phase(cluster), cluster.all("Pod")) == ("Terminated", [])


def test_hcclrank_counts_masters_first(cluster: Cluster) -> None:
    made(cluster, job_task("master", replicas=2), job_task("worker", replicas=2), hcclrank=[])
    ranks = {pod["metadata"]["name"]: pod["metadata"]["annotations"]["hccl/rankIndex"] for pod in cluster.all("Pod")}
    assert ranks == {"j-master-0": "0", "j-master-1": "1", "j-worker-0": "2", "j-worker-1": "3"}
    assert "controlledResources" not in status(cluster)


def test_hcclrank_takes_the_rank_that_pytorch_gave(cluster: Cluster) -> None:
    made(cluster, job_task("m"), job_task("w"), hcclrank=[], pytorch=["--master", "m", "--worker", "w"])
    assert cluster.get("Pod", "j-w-0")["metadata"]["annotations"]["hccl/rankIndex"] == "1"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-a=x", "--n", "7", "-b"], ("x", 7, True)),
        (["--n=0x10", "--b=f"], ("d", 16, False)),
        (["--n=many", "--a=x"], ("d", 0, False)),
        (["--n=1_000", "--a=x"], ("x", 1000, False)),
        (["--n=99999999999999999999", "--a=x"], ("d", 2**63 - 1, False)),
        (["--nothing=1", "--a=x"], ("d", 1, False)),
        (["plain", "--a=x"], ("d", 1, False)),
        (["--", "--a=x"], ("d", 1, False)),
        (["--a"], ("d", 1, False)),
    ],
)
def test_arguments_are_read_as_go_does(arguments: list[str], expected: tuple[str, int, bool]) -> None:
    found = parsed_flags(arguments, {"a": "d", "n": 1, "b": False})
    assert (found["a"], found["n"], found["b"]) == expected


@pytest.mark.parametrize(("port", "number"), [(22, 22), (2**63 - 1, -1), (2**32 + 7, 7), (-(2**63), 0)])
def test_port_is_cut_to_32_bits_as_go_does(port: int, number: int) -> None:
    opened = with_port({"name": "c"}, "p", port)
    assert opened["ports"] == [{"name": "p", "containerPort": number}]
    assert with_port(opened, "p", port) == opened


ARGUMENTS = st.lists(st.text(max_size=6) | st.sampled_from(["--port", "-port=", "--worker="]))


@given(st.sampled_from(sorted(PLUGINS)), ARGUMENTS)
def test_no_arguments_break_a_plugin(name: str, arguments: list[str]) -> None:
    job: Object = {**vcjob("j", job_task("a")), "kind": "Job"}
    job["metadata"] |= {"uid": "u", "namespace": "default"}
    plugin = PLUGINS[name](job, arguments)
    pod: Object = {"metadata": {"name": "j-a-0"}, "spec": {"containers": [{"name": "c"}]}}
    assert plugin.pod(pod, job["spec"]["tasks"][0], 0)["spec"]["containers"]
    assert {each["metadata"]["namespace"] for each in plugin.objects()} <= {"default"}
