"""The plugin predicates: the nodes that a task may go to. plugin.py has the order of the filters."""

from pumice.core.plugins.predicates.plugin import Predicates

__all__ = ["Predicates"]
