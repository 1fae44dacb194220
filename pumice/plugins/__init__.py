"""What a plugin of one's own is written with, and how it is found (loader.py).

A plugin is a class with a `name`, built anew for every cycle from its `arguments` in the configuration. When a session
opens it registers rules at extension points, which are typed: filters (`session.points.predicate.add`), scorers
(`node_order`, `batch_node_order`), orders (`job_order`: a JobColumn, or two jobs compared; `task_order`: a TaskKey, or
two tasks compared), votes, victims (`preemptable`: a Mask over many nodes' tasks, or a function of one node's), what
binds carry (`bind_context`). Node filters and scorers answer for arrays of rows (NodeFilter, NodeScorer), or for one
node at a time (PerNodeFilter, PerNodeScorer), and say what they read of a task (Reads). `examples/plugins` has one of
each kind; core/plugins/README.md lists the points.

Whatever it raises is named in the log and in the journal, and the cycle goes on: `onError: ignore` (the default) among
its arguments does as if it had not been asked, `onError: fail` refuses what it was asked about.
"""

from core.messages.decisions import BindContext
from core.objects.pod import Task
from core.plugins.plugin import Plugin, PluginBuilder
from core.session.points.batches import TaskBatch
from core.session.points.nodes import FloatArray, NodeCheck, NodeFilter, NodeScore, NodeScorer, Reads, Rows, Volatility
from core.session.points.orders import JobColumn, TaskKey
from core.session.points.per_node import NodeLook, PerNodeFilter, PerNodeScorer
from core.session.points.ready import ReadyCheck, ReadyScore
from core.session.points.victims import Mask
from core.session.points.votes import ValidateResult, Vote
from core.session.reasons import Code, FitFailure, IntArray, Reason
from core.session.session import Session
from pumice.plugins.loader import GROUP, install_plugins

__all__ = [
    "GROUP",
    "BindContext",
    "Code",
    "FitFailure",
    "FloatArray",
    "IntArray",
    "JobColumn",
    "Mask",
    "NodeCheck",
    "NodeFilter",
    "NodeLook",
    "NodeScore",
    "NodeScorer",
    "PerNodeFilter",
    "PerNodeScorer",
    "Plugin",
    "PluginBuilder",
    "Reads",
    "ReadyCheck",
    "ReadyScore",
    "Reason",
    "Rows",
    "Session",
    "Task",
    "TaskBatch",
    "TaskKey",
    "ValidateResult",
    "Volatility",
    "Vote",
    "install_plugins",
]
