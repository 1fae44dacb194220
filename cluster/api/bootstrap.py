# SPDX-License-Identifier: Apache-2.0
"""Objects of a new cluster before the first request: Volcano's two system queues, namespaces, and the API server's
Service.
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.cluster.api.admission.namespaces import FIRST, new_namespace
from pumice.cluster.api.admission.served import DEFAULT_CLASS, OWN_PROVISIONER
from pumice.cluster.api.admission.services import API_ADDRESS
from pumice.cluster.api.definitions.volcano import definitions
from pumice.cluster.api.verbs.requests import SUBMIT
from pumice.cluster.rbac.defaults import default_roles
from pumice.core.messages.commands import ApiRequest, Create, Patch
from pumice.core.objects.metadata import Object
from pumice.storage import codec

API_NAME = "kubernetes"
API_VERSION = "scheduling.volcano.sh/v1beta1"


def system_queues() -> list[Object]:
    """Return `root`, from which no queue reclaims, then `default` below it, as Volcano's scheduler creates them at its
    start.
    """
    return [_queue("root", reclaimable=False, parent=""), _queue("default", reclaimable=True, parent="root")]


def assumed_queues(objects: Sequence[Object]) -> list[Object]:
    """Return the queues `root` and `default`, as Volcano makes them, where they are not among the objects."""
    given = {obj["metadata"].get("name") for obj in objects if obj["kind"] == "Queue"}
    return [queue for queue in system_queues() if queue["metadata"]["name"] not in given]


def first_requests(
    queues: bool, address: tuple[str, int] | None, *, installed: bool = False, roles: bool = False
) -> list[ApiRequest]:
    """Return the first requests: the system queues, and where the api is served, at `address`, the namespaces, the
    StorageClass, the Service that every cluster has, and the definitions of Volcano's kinds. `installed`: some of these
    exist, and the missing ones have been deleted. `roles`: they are enforced, and begin with those of every cluster.
    """
    objects = [] if address is None else [*map(new_namespace, FIRST), _storage_class(), *api_service(address)]
    objects += [] if address is None or installed else definitions()
    objects += default_roles() if roles else []
    objects += system_queues() if queues else []
    made = [Create(codec.pack(obj), user=SUBMIT) for obj in objects]
    return [*made, *([] if address is None else api_moved(address))]


def api_service(address: tuple[str, int]) -> tuple[Object, Object, Object]:
    """Return the Service by which pods would know the API server, its Endpoints and its slice (source: kube-apiserver's
    `kubernetesservice`).
    """
    labels = {"component": "apiserver", "provider": "kubernetes"}
    meta = {"name": API_NAME, "namespace": "default"}
    port = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}
    subsets, endpoints, ports = _behind(address)
    return (
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {**meta, "labels": labels},
            "spec": {"clusterIP": API_ADDRESS, "ports": [port]},
        },
        {"apiVersion": "v1", "kind": "Endpoints", "metadata": dict(meta), "subsets": subsets},
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**meta, "labels": {"kubernetes.io/service-name": API_NAME}},
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": ports,
        },
    )


def _storage_class() -> Object:
    """Return the default class of claims: volumes are made where their pods go."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "standard", "annotations": {DEFAULT_CLASS: "true"}},
        "provisioner": OWN_PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def api_moved(address: tuple[str, int]) -> list[ApiRequest]:
    """Return the requests that correct the API server's address after a restart."""
    subsets, endpoints, ports = _behind(address)
    return [
        Patch("Endpoints", "default", API_NAME, codec.pack({"subsets": subsets})),
        Patch("EndpointSlice", "default", API_NAME, codec.pack({"endpoints": endpoints, "ports": ports})),
    ]


def _behind(address: tuple[str, int]) -> tuple[list[Object], list[Object], list[Object]]:
    """Return subsets of the Endpoints, and endpoints and ports of the slice."""
    host, number = address
    ports: list[Object] = [{"name": "https", "port": number, "protocol": "TCP"}]
    subsets = [{"addresses": [{"ip": host}], "ports": ports}]
    return subsets, [{"addresses": [host], "conditions": {"ready": True}}], ports


def _queue(name: str, *, reclaimable: bool, parent: str) -> Object:
    spec: Object = {"weight": 1, "reclaimable": reclaimable}
    if parent:
        spec["parent"] = parent
    return {"apiVersion": API_VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
