"""Plugin rescheduling: moves pods away from nodes that are really busy. Source: Volcano `plugins/rescheduling`."""

from pumice.core.plugins.rescheduling.plugin import Rescheduling

__all__ = ["Rescheduling"]
