"""deviceshare: cards that pods share. Source: Volcano `plugins/deviceshare`, `plugins/predicates` (AllocateFunc).

| file | what |
|---|---|
| plugin.py | arguments, what is registered where |
| families.py | which kinds of devices there are, with their cards |
| assignments.py | who has which devices in the session, and what is written on pods |
| looking.py | filter and scorer |
| trials.py | the dry runs of preemption |
"""

from pumice.core.plugins.deviceshare.plugin import DeviceShare

__all__ = ["DeviceShare"]
