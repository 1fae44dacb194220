"""Plugin task-topology: which roles of a job like to share a node, and which do not.

relations.py reads what the PodGroup says, buckets.py groups a job's tasks, orders.py and scores.py answer from the
groups.
"""

from pumice.core.plugins.task_topology.plugin import TaskTopology

__all__ = ["TaskTopology"]
