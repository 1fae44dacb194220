"""Plugin extender: an outside process is asked over HTTP. Source: Volcano `plugins/extender`."""

from pumice.core.plugins.extender.plugin import Extender

__all__ = ["Extender"]
