"""Volcano's own examples, applied by the real kubectl as their readers do, and waited for.

They lie beside the repository (`shared/manifests/volcano-examples`). Each file is applied in a namespace of its own;
all run at the same time.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest
import yaml

from tests.kit import source
from tests.kit.kubectl import Kubectl, kubectl_for
from tests.kit.roles import OF_NAMESPACES
from tests.kit.serving import Served, served

EXAMPLES: Final = source.SHARED / "manifests" / "volcano-examples"
FILES: Final = sorted(path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.yaml"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FILES, reason="no shared/manifests beside the repository"),
]

FIRST: Final = ("hierarchical-jobs/queues.yaml", "deployment/queue.yaml")
OF_DEFAULT: Final = ("jobflow/JobFlow.yaml",)
"""These say which namespace they are for."""

NO_KIND: Final = "ensure CRDs are installed first"
REFUSED: Final = {
    "invalid_jobs/duplicatedPolicyEvent-webhook-deny.yaml": "duplicate event across different policies",
    "invalid_jobs/duplicatedTaskName-webhook-deny.yaml": "duplicated task name",
    "invalid_jobs/minAvailable-webhook-deny.yaml": "should not be greater than total replicas",
    "kubecon-2019-china/spark-sample/spark-pi.yaml": NO_KIND,
    "kubecon-2019-china/task-priority/elastic-job.yaml": 'unknown field "spec.tasks[0].template.spec.priorityClass"',
    "kubecon-2019-china/task-priority/high-priority.yaml": NO_KIND,
    "kubecon-2019-china/task-priority/normal-priority.yaml": NO_KIND,
}
"""What Kubernetes 1.35 with Volcano refuses too, and what it says: webhooks, old versions, a field misspelt."""

KEPT_UP: Final = (
    "MindSpore-example/mindspore_gpu/mindspore-gpu.yaml",
    "hierarchical-jobs/jobs.yaml",
    "integrations/ray/ray-example.yaml",
    "job-plugin.yaml",
    "job.yaml",
    "task-start-dependency/job.yaml",
)
"""Jobs that go on: commands like `sleep 3600`, `sshd -D` and `ray start --block`, and the servers of the image nginx,
which has no command here. All of their pods run, those of the tasks that wait for other tasks too.
"""


def node(number: int) -> dict[str, Any]:
    """A node large enough for every example, with the devices and labels they ask for."""
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti", "nvidia.com/gpu": "8"}
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/hostname": "192.168.23.24" if not number else f"big-{number}"}
    ready = {"type": "Ready", "status": "True"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"big-{number}", "labels": labels},
        "status": status,
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("examples"), role=OF_NAMESPACES) as server:
        yield server


@pytest.fixture(scope="module")
def kubectl(server: Served) -> Kubectl:
    return kubectl_for(server)


def namespace_of(file: str) -> str:
    return "default" if file in OF_DEFAULT else f"ex{FILES.index(file)}"


@pytest.fixture(scope="module")
def said(kubectl: Kubectl) -> dict[str, str]:
    """What kubectl said about each file."""
    nodes = {"apiVersion": "v1", "kind": "List", "items": [node(number) for number in range(4)]}
    kubectl("apply", "-f", "-", stdin=msgspec.json.encode(nodes).decode())
    answers: dict[str, str] = {}
    for file in sorted(FILES, key=lambda file: file not in FIRST):
        namespace = namespace_of(file)
        if namespace != "default":
            kubectl("create", "namespace", namespace)
        places = () if "spark" in file or namespace == "default" else ("-n", namespace)
        done = kubectl.run("apply", "-f", str(EXAMPLES / file), *places)
        answers[file] = done.stdout if done.returncode == 0 else f"refused: {done.stderr}"
    return answers


@pytest.mark.parametrize("file", sorted(REFUSED))
def test_what_a_cluster_refuses_is_refused(said: dict[str, str], file: str) -> None:
    assert said[file].startswith("refused: ")
    assert REFUSED[file] in said[file]


@pytest.mark.parametrize("file", [file for file in FILES if file not in REFUSED])
def test_an_example_is_applied_and_gets_where_it_should(kubectl: Kubectl, said: dict[str, str], file: str) -> None:
    assert not said[file].startswith("refused"), said[file]
    documents = [one for one in yaml.safe_load_all((EXAMPLES / file).read_text("utf-8")) if one]
    assert said[file].count(" created") == len(documents)
    for document in documents:
        kubectl("wait", *wait_for(document, file), "-n", namespace_of(file), "--timeout=60s")


def wait_for(document: dict[str, Any], file: str) -> tuple[str, str]:
    """The object, and the condition that says it got where it should."""
    kind, name = document["kind"], document["metadata"]["name"]
    group = document["apiVersion"].partition("/")[0]
    about = f"{kind.lower()}.{group}/{name}"
    match kind:
        case "Job":
            if file in KEPT_UP:
                replicas = sum(task["replicas"] for task in document["spec"]["tasks"])
                return f"vcjob/{name}", f"--for=jsonpath={{.status.running}}={replicas}"
            return f"vcjob/{name}", "--for=jsonpath={.status.state.phase}=Completed"
        case "Queue":
            return about, "--for=jsonpath={.status.state}=Open"
        case "Deployment":
            return about, "--for=condition=Available"
        case "ReplicaSet":
            return about, f"--for=jsonpath={{.status.readyReplicas}}={document['spec']['replicas']}"
        case _:
            return about, "--for=create"
