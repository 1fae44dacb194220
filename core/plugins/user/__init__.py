"""Plugins that somebody else wrote, kept from harming a cycle: what they raise is named and answered for.

plugin.py stands in for the plugin, points.py for its functions, nodes.py for its filters and scorers, failures.py
remembers what went wrong.
"""

from pumice.core.plugins.user.failures import PluginFailures
from pumice.core.plugins.user.plugin import UserPlugin, guarded

__all__ = ["PluginFailures", "UserPlugin", "guarded"]
