"""tdm: nodes that belong to others at certain hours. Source: Volcano `plugins/tdm` (time-division multiplexing).

| file | question |
|---|---|
| zones.py | when is a zone ours |
| nodes.py | which nodes may a task use, and which does it prefer |
| budget.py | how many pods of a job may be evicted at once |
| plugin.py | wiring, victims |
"""

from pumice.core.plugins.tdm.plugin import Tdm

__all__ = ["Tdm"]
