"""One server for all: scheduler, controllers and node agents run, so pods come to life."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from pumice.core.objects.metadata import Object
from tests.kit.kubectl import Kubectl, kubectl_for
from tests.kit.roles import OF_NAMESPACES
from tests.kit.serving import Served, served

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The whole system, with the three nodes that it brings along."""
    with served(tmp_path_factory.mktemp("kubectl"), role=OF_NAMESPACES) as running:
        yield running


@pytest.fixture(scope="session")
def kubectl(server: Served) -> Kubectl:
    """The real one."""
    return kubectl_for(server)


@pytest.fixture
def namespace(server: Served) -> str:
    """A fresh one."""
    name = f"n{next(_NUMBERS)}"
    with server.client() as http:
        http.post("/api/v1/namespaces", json={"metadata": {"name": name}}).raise_for_status()
    return name


@pytest.fixture
def inside(kubectl: Kubectl, namespace: str) -> Any:
    """kubectl with the namespace filled in."""

    def run(*arguments: str, **more: Any) -> str:
        return kubectl("-n", namespace, *arguments, **more)

    return run


def text(*objects: Object) -> str:
    """Manifests as one YAML text."""
    return yaml.safe_dump_all(objects)


def pod(name: str, *, lasts: str = "0", cpu: str = "100m", **labels: str) -> Object:
    """A pod that runs for ever, unless told otherwise."""
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "annotations": {"pumice.dev/duration": lasts}},
        "spec": {"schedulerName": "volcano", "terminationGracePeriodSeconds": 1, "containers": [container]},
    }


def queue(name: str, weight: int = 1) -> Object:
    """A queue below the root."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": weight},
    }
