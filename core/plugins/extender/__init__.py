"""Plugin extender: an outside process is asked over HTTP. Source: Volcano `plugins/extender`.

settings.py reads the arguments, bodies.py and node_parts.py say what is asked about as Volcano's structs encode,
replies.py reads what comes back, calls.py asks one verb, nodes.py are the filter and the scorer, plugin.py registers
all of it.
"""

from pumice.core.plugins.extender.plugin import Extender

__all__ = ["Extender"]
