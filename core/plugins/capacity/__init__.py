# SPDX-License-Identifier: Apache-2.0
"""capacity: queues get what they deserve, and may borrow up to their capability; flat or as a tree. Source: Volcano
`plugins/capacity`.

| file | question |
|---|---|
| limits.py | what is known of a queue; limits of queues side by side and in a tree, kept from session to session |
| ledger.py | what queues have, ask for and are promised |
| claims.py | quotas of devices |
| plugin.py | what a queue may still take, who goes first, whose tasks may be taken |
"""

from pumice.core.plugins.capacity.plugin import Capacity

__all__ = ["Capacity"]
