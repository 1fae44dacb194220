# SPDX-License-Identifier: Apache-2.0
"""The plugin extender: it asks an outside process over HTTP. Source: Volcano `plugins/extender`."""

from pumice.core.plugins.extender.plugin import Extender

__all__ = ["Extender"]
