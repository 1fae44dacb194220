"""Plugin nodeorder: which of the nodes a task may go to it should go to. plugin.py has the weights."""

from pumice.core.plugins.nodeorder.plugin import NodeOrder

__all__ = ["NodeOrder"]
