"""Names that a plugin of your own needs, and the loader that finds it (loader.py).

A plugin is a class with a `name`, built anew for every cycle from its `arguments` in the configuration. When a session
opens it registers rules at extension points, which are typed: filters (`session.points.predicate.add`), scorers
(`node_order`, `batch_node_order`), orders (`job_order`: a JobColumn, or two jobs compared; `task_order`: a TaskKey, or
two tasks compared), votes, victims (`preemptable`: a Mask over many nodes' tasks, or a function of one node's), what
binds carry (`bind_context`). A filter may be a plain function of a task and a node (NodeTest: None, or why not), a
scorer likewise (NodeRate: a number). PerNodeFilter and PerNodeScorer around one say what it reads, so that tasks share
answers; a NodeFilter or NodeScorer says it of all nodes at once, in one of the forms ReadyCheck, ReadyScore (once for
all), KeptCheck, KeptScore (again when something was placed), RowsCheck, RowsScore (of the rows that are asked about),
ColumnCheck, ColumnScore (an expression over columns). `examples/plugins` has one of each kind; core/plugins/README.md
lists the points.

Whatever it raises is named in the log and in the journal, and the cycle goes on: `onError: ignore` (the default) among
its arguments does as if it had not been asked, `onError: fail` refuses what it was asked about.
"""

from pumice.core.messages.decisions import BindContext
from pumice.core.objects.pod import Task
from pumice.core.plugins.plugin import Plugin, PluginBuilder
from pumice.core.session.points.columns import Clause, ColumnCheck, ColumnScore
from pumice.core.session.points.nodes import (
    FloatArray,
    NodeCheck,
    NodeFilter,
    NodeScore,
    NodeScorer,
    Reads,
    Rows,
    TaskBatch,
    Volatility,
)
from pumice.core.session.points.orders import JobColumn, TaskKey
from pumice.core.session.points.per_node import NodeLook, NodeRate, NodeTest, PerNodeFilter, PerNodeScorer
from pumice.core.session.points.ready import KeptCheck, KeptScore, ReadyCheck, ReadyScore, RowsCheck, RowsScore
from pumice.core.session.points.victims import GangEvictor, Mask
from pumice.core.session.points.votes import ValidateResult, Vote
from pumice.core.session.reasons import Code, FitFailure, IntArray, Reason
from pumice.core.session.session import Session
from pumice.plugins.loader import GROUP, install_plugins

__all__ = [
    "GROUP",
    "BindContext",
    "Clause",
    "Code",
    "ColumnCheck",
    "ColumnScore",
    "FitFailure",
    "FloatArray",
    "GangEvictor",
    "IntArray",
    "JobColumn",
    "KeptCheck",
    "KeptScore",
    "Mask",
    "NodeCheck",
    "NodeFilter",
    "NodeLook",
    "NodeRate",
    "NodeScore",
    "NodeScorer",
    "NodeTest",
    "PerNodeFilter",
    "PerNodeScorer",
    "Plugin",
    "PluginBuilder",
    "Reads",
    "ReadyCheck",
    "ReadyScore",
    "Reason",
    "Rows",
    "RowsCheck",
    "RowsScore",
    "Session",
    "Task",
    "TaskBatch",
    "TaskKey",
    "ValidateResult",
    "Volatility",
    "Vote",
    "install_plugins",
]
