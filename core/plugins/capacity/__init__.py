"""capacity: queues have what they deserve, and may borrow up to their capability; flat or as a tree. Source: Volcano
`plugins/capacity`.

| file | question |
|---|---|
| attributes.py | what is known of a queue |
| flat.py, tree.py | limits of queues side by side, and in a tree |
| kept.py | limits that last from session to session |
| ledger.py | gathering: what queues have, ask for and are promised |
| gauges.py | what is shown |
| order.py | who goes first |
| limits.py | what a queue may still take |
| reclaim.py | whose tasks may be taken |
| simulate.py | the same while a preemption is tried out |
| claims.py | quotas of devices |
| plugin.py | wiring |
"""

from pumice.core.plugins.capacity.plugin import Capacity

__all__ = ["Capacity"]
