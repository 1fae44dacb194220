# SPDX-License-Identifier: Apache-2.0
"""Storage and devices of a storm: the offers of nodes, and the claims of pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pumice.core.objects.metadata import Object

DRIVER: Final = "gpu.example.com"
DEVICE_CLASS: Final = "gpu"
MOST_DEVICES: Final = 2
"""That a pod claims."""
MOST_SHARING: Final = 4
LOCAL: Final = "local"
"""Storage class of volumes that are there already, each on one node."""
MADE: Final = "made"
"""Storage class of volumes that are made once a pod has been given a node."""
PROVISIONERS: Final = {LOCAL: "kubernetes.io/no-provisioner", MADE: "csi.example.com"}
HOSTNAME: Final = "kubernetes.io/hostname"
VOLUME: Final = "data"
"""The name of a pod's volume."""
RESOURCE: Final = "resource.k8s.io/v1"


def classes(namespace: str) -> Iterator[Object]:
    """Yield a device class, templates of claims for one device and more, and the two storage classes."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    yield _object(RESOURCE, "DeviceClass", {"name": DEVICE_CLASS}, spec={"selectors": [selector]})
    for count in range(1, MOST_DEVICES + 1):
        spec = {"spec": _asking_for(count)}
        yield _object(RESOURCE, "ResourceClaimTemplate", {"name": template(count), "namespace": namespace}, spec=spec)
    for name, provisioner in PROVISIONERS.items():
        waits = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        yield _object("storage.k8s.io/v1", "StorageClass", {"name": name}, **waits)


def template(devices: int) -> str:
    """Return the name of the template of claims for so many devices."""
    return f"gpus-{devices}"


def own_claims(namespace: str, details: Object) -> Iterator[Object]:
    """Yield the claim that the pods of a job share, named by `shared`."""
    if details.get("shared"):
        metadata = {"name": details["shared"], "namespace": namespace}
        yield _object(RESOURCE, "ResourceClaim", metadata, spec=_asking_for(1))


def offers(node: str, details: Object) -> Iterator[Object]:
    """Yield the objects of a node that pods can claim: `devices`, and local `volumes`, so many of each."""
    if details.get("devices"):
        devices = [{"name": f"gpu{number}"} for number in range(int(details["devices"]))]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
        yield _object(RESOURCE, "ResourceSlice", {"name": f"{node}-gpus"}, spec=spec)
    if details.get("volumes"):
        yield drivers(node)
    for number in range(int(details.get("volumes", 0))):
        yield _object("v1", "PersistentVolume", {"name": f"{node}-v{number}"}, spec=_volume(node))


def claimed(details: Object) -> Object:
    """Return the part of a pod's spec that claims `devices` (how many), `storage` (the class), or a `shared` claim."""
    spec: Object = {}
    if details.get("shared"):
        spec["resourceClaims"] = [{"name": "d", "resourceClaimName": details["shared"]}]
    if details.get("devices"):
        spec["resourceClaims"] = [{"name": "d", "resourceClaimTemplateName": template(int(details["devices"]))}]
    if details.get("storage"):
        asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"spec": {**asked, "storageClassName": details["storage"]}}
        spec["volumes"] = [{"name": VOLUME, "ephemeral": {"volumeClaimTemplate": claim}}]
    return spec


def drivers(node: str) -> Object:
    """Return the CSINode: both storage classes can be used on the node, as often as one likes."""
    listed = [{"name": provisioner, "nodeID": node} for provisioner in PROVISIONERS.values()]
    return _object("storage.k8s.io/v1", "CSINode", {"name": node}, spec={"drivers": listed})


def _asking_for(devices: int) -> Object:
    request = {"name": "r", "exactly": {"deviceClassName": DEVICE_CLASS, "count": devices}}
    return {"devices": {"requests": [request]}}


def _volume(node: str) -> Object:
    here = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}
    return {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": LOCAL,
        "persistentVolumeReclaimPolicy": "Retain",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [here]}},
    }


def _object(version: str, kind: str, metadata: Object, **more: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}
