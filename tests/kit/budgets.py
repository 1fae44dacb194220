"""PodDisruptionBudgets for tests."""

from typing import Any

from pumice.core.objects.metadata import Object

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def budget(name: str = "pdb", selector: Object | None = None, **spec: Any) -> Object:
    chosen = {"matchLabels": {"app": "web"}} if selector is None else selector
    meta = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": meta,
        "spec": {"selector": chosen, **spec},
    }
