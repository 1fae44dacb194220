"""A small operator with kopf: a Training becomes a Volcano Job, and says when that has ended."""

import os
from importlib import import_module
from typing import Any, Final

import kopf

kubernetes: Final[Any] = import_module("kubernetes")  # it has no types

GROUP: Final = ("batch.volcano.sh", "v1alpha1")


@kopf.on.create("example.com", "v1", "trainings")
def begin(spec: kopf.Spec, name: str, namespace: str | None, uid: str, **_: Any) -> None:
    """Create the Job, whose owner is the Training."""
    template = {
        "metadata": {"annotations": {"pumice.dev/duration": f"{spec['seconds']}s"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train"}]},
    }
    owner = {"apiVersion": "example.com/v1", "kind": "Training", "name": name, "uid": uid, "controller": True}
    job = {
        "apiVersion": "/".join(GROUP),
        "kind": "Job",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": spec["workers"],
            "tasks": [{"name": "worker", "replicas": spec["workers"], "template": template}],
        },
    }
    kubernetes.client.CustomObjectsApi().create_namespaced_custom_object(*GROUP, namespace, "jobs", job)


@kopf.on.field(*GROUP, "jobs", field="status.state.phase")
def follow(new: object, name: str, namespace: str | None, **_: Any) -> None:
    """Copy the phase of the Job to its Training."""
    body = {"status": {"phase": new}}
    api = kubernetes.client.CustomObjectsApi()
    api.patch_namespaced_custom_object_status("example.com", "v1", namespace, "trainings", name, body)


@kopf.on.login()
def log_in(settings: kopf.OperatorSettings, **_: Any) -> Any:
    """Take the cluster of KUBECONFIG."""
    return kopf.login_with_kubeconfig(settings=settings)


@kopf.on.startup()
def connect(**_: Any) -> None:
    """Have the official client take it, too, which has read the variable before."""
    kubernetes.config.load_kube_config(os.environ["KUBECONFIG"])
