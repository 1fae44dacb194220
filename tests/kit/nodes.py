"""Nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

from pumice.core.objects.metadata import Object
from tests.kit.objects import CREATED, metadata, resources, without_empty


def node(
    name: str,
    *,
    cpu: str = "8",
    memory: str = "16Gi",
    pods: str = "110",
    gpus: int = 0,
    extra: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[Object] = (),
    unschedulable: bool = False,
    ready: bool = True,
    created: str = CREATED,
) -> Object:
    """A node, ready unless told otherwise, allocatable equal to capacity, labelled with its host name."""
    amounts = resources(cpu, memory, gpus, {"pods": pods, **(extra or {})})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(
            name, labels={"kubernetes.io/hostname": name, **(labels or {})}, annotations=annotations, created=created
        ),
        "spec": without_empty(taints=list(taints), unschedulable=unschedulable or None),
        "status": {
            "capacity": dict(amounts),
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def nodes(count: int, *, prefix: str = "n", **each: Any) -> list[Object]:
    """That many equal nodes, n0, n1 …; the other arguments are those of `node`."""
    return [node(f"{prefix}{index}", **each) for index in range(count)]


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Object:
    """A taint for `node(taints=[…])`."""
    return without_empty(key=key, value=value, effect=effect)
