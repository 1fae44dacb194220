"""What a plugin of one's own is written with, and how it is found (loader.py).

A plugin is a class with a `name`, built anew for every cycle from its `arguments` in the configuration. When a session
opens it registers what it has to say: filters (`session.add_predicate`), scorers (`session.add_node_order`,
`session.add_batch_node_order`), orders and votes (`session.points.add`). Node filters and scorers answer for arrays of
rows (NodeFilter, NodeScorer), or for one node at a time (PerNodeFilter, PerNodeScorer). `examples/plugins` has one of
each kind.

Whatever it raises is named in the log and in the journal, and the cycle goes on: `onError: ignore` (the default) among
its arguments does as if it had not been asked, `onError: fail` refuses what it was asked about.
"""

from core.objects.pod import Task
from core.plugins.plugin import Plugin, PluginBuilder
from core.session.node_points import FloatArray, NodeCheck, NodeFilter, NodeScore, NodeScorer, Rows, Volatility
from core.session.per_node import NodeLook, PerNodeFilter, PerNodeScorer
from core.session.points import Verdict, Vote
from core.session.ready import ReadyCheck, ReadyScore
from core.session.reasons import Code, FitFailure, IntArray, Reason
from core.session.session import Session
from pumice.plugins.loader import GROUP, install_plugins

__all__ = [
    "GROUP",
    "Code",
    "FitFailure",
    "FloatArray",
    "IntArray",
    "NodeCheck",
    "NodeFilter",
    "NodeLook",
    "NodeScore",
    "NodeScorer",
    "PerNodeFilter",
    "PerNodeScorer",
    "Plugin",
    "PluginBuilder",
    "ReadyCheck",
    "ReadyScore",
    "Reason",
    "Rows",
    "Session",
    "Task",
    "Verdict",
    "Volatility",
    "Vote",
    "install_plugins",
]
