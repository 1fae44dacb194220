# SPDX-License-Identifier: Apache-2.0
"""The plugin nodeorder: it ranks the nodes that a task may go to. plugin.py has the weights."""

from pumice.core.plugins.nodeorder.plugin import NodeOrder

__all__ = ["NodeOrder"]
