"""Builders of the Kubernetes objects that tests are made of: plain dictionaries with good defaults.

`node("n0", gpus=2)`, `queue("q", weight=3)`, `gang("j", queue="q", pods=8)` and their kin return what a manifest of the
same content decodes to, so one object can be given to the store, to the scheduler's view, or written out as YAML.
"""

from pumice.core.objects.metadata import Object
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import node, nodes, taint
from tests.kit.objects import CREATED
from tests.kit.pod_groups import pod_group
from tests.kit.pods import node_affinity, pod, toleration
from tests.kit.priority_classes import priority_class
from tests.kit.queues import queue

__all__ = [
    "CREATED",
    "Object",
    "gang",
    "job_task",
    "node",
    "node_affinity",
    "nodes",
    "pod",
    "pod_group",
    "priority_class",
    "queue",
    "taint",
    "toleration",
    "vcjob",
]
