"""Storage classes, volumes, claims, devices and the claims on them."""

from __future__ import annotations

from typing import Any

from pumice.core.objects.metadata import Object

HOSTNAME = "kubernetes.io/hostname"


def storage_class(name: str, *, provisioner: str = "csi.example.com", waits: bool = True, **more: Any) -> Object:
    """One that waits for the first consumer, unless told otherwise."""
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    meta = {"name": name}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": meta,
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **more,
    }


def local_class(name: str = "local") -> Object:
    """Volumes that are there already, bound when a pod is placed."""
    return storage_class(name, provisioner="kubernetes.io/no-provisioner")


def volume(name: str, *, size: str = "1Gi", cls: str = "local", node: str | None = None, **spec: Any) -> Object:
    """A persistent volume; `node`: reachable from there only."""
    found: Object = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": cls, **spec}
    if node is not None:
        here = {"key": HOSTNAME, "operator": "In", "values": [node]}
        found["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": found}


def claim(name: str, *, size: str = "1Gi", cls: str = "local", **spec: Any) -> Object:
    """A persistent volume claim in namespace default."""
    asked = {"resources": {"requests": {"storage": size}}, "accessModes": ["ReadWriteOnce"], "storageClassName": cls}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": {**asked, **spec}}


def csi_node(name: str, *drivers: str, most: int | None = None) -> Object:
    """What a node has of these drivers' volumes; no limit unless told."""
    limit = {} if most is None else {"allocatable": {"count": most}}
    listed = [{"name": driver, "nodeID": name, **limit} for driver in drivers]
    meta = {"name": name}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": meta, "spec": {"drivers": listed}}


def using(pod: Object, *claims: str) -> Object:
    """The pod with a volume for each claim."""
    volumes = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(claims)]
    return {**pod, "spec": {**pod["spec"], "volumes": volumes}}


def device_class(name: str = "gpu") -> Object:
    """All devices of one driver."""
    selectors = [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]
    api = "resource.k8s.io/v1"
    return {"apiVersion": api, "kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": selectors}}


def device_slice(node: str, devices: int = 1) -> Object:
    """So many devices on one node."""
    spec: Object = {
        "driver": "gpu.example.com",
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu{number}"} for number in range(devices)],
    }
    meta = {"name": f"{node}-slice"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": meta, "spec": spec}


def device_claim(name: str, *, count: int = 1) -> Object:
    """A resource claim in namespace default."""
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}
    spec = {"devices": {"requests": [request]}}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": spec}


def with_devices(pod: Object, *claims: str) -> Object:
    """The pod with these resource claims."""
    listed = [{"name": f"d{i}", "resourceClaimName": name} for i, name in enumerate(claims)]
    return {**pod, "spec": {**pod["spec"], "resourceClaims": listed}}


def with_templates(pod: Object, *templates: str) -> Object:
    """The pod with a resource claim from each of these templates."""
    listed = [{"name": f"d{i}", "resourceClaimTemplateName": name} for i, name in enumerate(templates)]
    return {**pod, "spec": {**pod["spec"], "resourceClaims": listed}}


def claim_template(name: str, *, count: int = 1, labels: dict[str, str] | None = None) -> Object:
    """A template of resource claims in namespace default."""
    spec = {"metadata": {"labels": labels or {}}, "spec": device_claim("", count=count)["spec"]}
    meta = {"name": name, "namespace": "default"}
    api = "resource.k8s.io/v1"
    return {"apiVersion": api, "kind": "ResourceClaimTemplate", "metadata": meta, "spec": spec}


def with_ephemeral(
    pod: Object, name: str, *, size: str = "1Gi", cls: str = "local", labels: dict[str, str] | None = None
) -> Object:
    """The pod with one ephemeral volume."""
    template = {"metadata": {"labels": labels or {}}, "spec": claim("", size=size, cls=cls)["spec"]}
    volumes = [{"name": name, "ephemeral": {"volumeClaimTemplate": template}}]
    return {**pod, "spec": {**pod["spec"], "volumes": volumes}}
