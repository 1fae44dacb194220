"""The search for the node of a task: filters and scores of one kind of task."""
