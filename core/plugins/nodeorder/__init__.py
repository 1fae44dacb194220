"""Plugin nodeorder: which of the nodes a task may go to it should go to. One file a scorer.

The weights are in plugin.py.
"""

from pumice.core.plugins.nodeorder.plugin import NodeOrder

__all__ = ["NodeOrder"]
