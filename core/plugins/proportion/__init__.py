"""proportion: each queue deserves a share by weight of what is asked for. Source: Volcano `plugins/proportion`."""

from pumice.core.plugins.proportion.plugin import Proportion

__all__ = ["Proportion"]
