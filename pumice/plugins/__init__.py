# SPDX-License-Identifier: Apache-2.0
"""Names that a plugin of your own needs, and the loader that finds it (loader.py).

A plugin is a class with a `name`, built anew for every cycle from its `arguments` in the configuration. When a session
opens it registers rules at extension points, which are typed: filters (`session.points.predicate.add`), scorers
(`node_order`, `batch_node_order`), orders (`job_order`: a JobColumn, or two jobs compared; `task_order`: a TaskKey, or
two tasks compared), votes, victims (`preemptable`: a Mask over many nodes' tasks, or a function of one node's), what
binds carry (`bind_context`).

A rule about nodes has one of two forms. A **per-node function** of a task and a node is enough for most: a filter says
None or why not (NodeTest), a scorer a number (NodeRate). PerNodeFilter and PerNodeScorer around one say what it reads,
so that tasks share answers.

    session.points.predicate.add(self.name, lambda task, node: None if node.idle("cpu") > 500 else "nearly full")

A **column rule** says it of many nodes in one batch, which costs nanoseconds a node: a NodeFilter or NodeScorer has
`name`, `reads` (Reads: what of a task beside its template) and `prepare(session, task)`, which gives a ColumnRule. This
is a function over rows with the Volatility of what it reads; an array [N] is a final answer; Expression and Clauses are
functions over columns that are read as plain numbers where one row is asked about.

    def prepare(self, session: Session, task: Task) -> ColumnRule[np.float64]:
        return ColumnRule(lambda rows: session.nodes.idle[0][rows] / 1000, Volatility.ROW)

`examples/plugins` has a plugin of each form; core/plugins/README.md lists the points.

Whatever it raises is named in the log and in the journal, and the cycle goes on: `onError: ignore` (the default) among
its arguments does as if it had not been asked, `onError: fail` refuses what it was asked about.
"""

from __future__ import annotations

from typing import Any
from warnings import warn

from pumice.core.messages.decisions import BindContext
from pumice.core.objects.pod import Task
from pumice.core.plugins.plugin import Plugin, PluginBuilder
from pumice.core.session.points.columns import Clause, Clauses, Expression
from pumice.core.session.points.earlier_forms import FORMS
from pumice.core.session.points.nodes import (
    FloatArray,
    NodeFilter,
    NodeScorer,
    Reads,
    Rows,
    TaskBatch,
    Volatility,
)
from pumice.core.session.points.orders import JobColumn, TaskKey
from pumice.core.session.points.per_node import NodeLook, NodeRate, NodeTest, PerNodeFilter, PerNodeScorer
from pumice.core.session.points.rules import ColumnRule
from pumice.core.session.points.victims import GangEvictor, Mask
from pumice.core.session.points.votes import ValidateResult, Vote
from pumice.core.session.reasons import Code, FitFailure, IntArray, Reason
from pumice.core.session.session import Session
from pumice.plugins.loader import GROUP, install_plugins

__all__ = [
    "GROUP",
    "BindContext",
    "Clause",
    "Clauses",
    "Code",
    "ColumnRule",
    "Expression",
    "FitFailure",
    "FloatArray",
    "GangEvictor",
    "IntArray",
    "JobColumn",
    "Mask",
    "NodeFilter",
    "NodeLook",
    "NodeRate",
    "NodeScorer",
    "NodeTest",
    "PerNodeFilter",
    "PerNodeScorer",
    "Plugin",
    "PluginBuilder",
    "Reads",
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


def __getattr__(name: str) -> Any:
    """Return a form of node rules of earlier versions, with a warning; rules of such a form still work."""
    if name not in FORMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    form, instead = FORMS[name]
    warn(f"pumice.plugins.{name} is of earlier versions: write {instead} in its place", FutureWarning, stacklevel=2)
    return form
