"""Plugin predicates: which nodes a task may go to. One file a filter; the order is in plugin.py."""

from pumice.core.plugins.predicates.plugin import Predicates

__all__ = ["Predicates"]
