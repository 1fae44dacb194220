"""drf: the job with the smaller dominant share goes first; by hierarchy also the queue. Source: Volcano `plugins/drf`.

| file | question |
|---|---|
| shares.py | what is a job's dominant share |
| tree.py | what is the share of a queue in a hierarchy |
| plugin.py | orders, victims, wiring |
"""

from pumice.core.plugins.drf.plugin import Drf

__all__ = ["Drf"]
