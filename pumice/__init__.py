# SPDX-License-Identifier: Apache-2.0
"""Pumice: the Volcano batch scheduler as one long-lived process made of actors."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pumice.lab.builders import gang, nodes, priority_class, queue, trace
    from pumice.lab.cluster import Cluster, read
    from pumice.lab.kept import DecidedCycle
    from pumice.lab.lived import LivedRun, measures_of
    from pumice.questions.evaluation.bounds import makespan_bound, packing_bound
    from pumice.questions.evaluation.evaluate import Evaluation, Evaluator, evaluate
    from pumice.questions.evaluation.policy import Policy
    from pumice.questions.evaluation.sandbox import Sandbox
    from pumice.questions.evaluation.workload import EvaluatedWorkload as Workload
    from pumice.questions.whatif import changes

__all__ = [
    "Cluster",
    "DecidedCycle",
    "Evaluation",
    "Evaluator",
    "LivedRun",
    "Policy",
    "Sandbox",
    "Workload",
    "__version__",
    "changes",
    "evaluate",
    "gang",
    "makespan_bound",
    "measures_of",
    "nodes",
    "packing_bound",
    "priority_class",
    "queue",
    "read",
    "trace",
]

__version__: Final = "1.0.0rc1"

_LAB: Final = {
    "Cluster": "pumice.lab.cluster",
    "DecidedCycle": "pumice.lab.kept",
    "Evaluation": "pumice.questions.evaluation.evaluate",
    "Evaluator": "pumice.questions.evaluation.evaluate",
    "LivedRun": "pumice.lab.lived",
    "Policy": "pumice.questions.evaluation.policy",
    "Sandbox": "pumice.questions.evaluation.sandbox",
    "Workload": "pumice.questions.evaluation.workload:EvaluatedWorkload",
    "changes": "pumice.questions.whatif.changes:",
    "evaluate": "pumice.questions.evaluation.evaluate",
    "gang": "pumice.lab.builders",
    "makespan_bound": "pumice.questions.evaluation.bounds",
    "measures_of": "pumice.lab.lived",
    "nodes": "pumice.lab.builders",
    "packing_bound": "pumice.questions.evaluation.bounds",
    "priority_class": "pumice.lab.builders",
    "queue": "pumice.lab.builders",
    "read": "pumice.lab.cluster",
    "trace": "pumice.lab.builders",
}


def __getattr__(name: str) -> Any:
    """Import and return a name of the library on first use: a command line needs few of them."""
    if name not in _LAB:
        raise AttributeError(f"module 'pumice' has no attribute {name!r}")
    module, _, said = _LAB[name].partition(":")
    found = import_module(module)
    if not _LAB[name].endswith(":"):
        found = getattr(found, said or name)
    globals()[name] = found
    return found
