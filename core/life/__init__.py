"""Life cycles of tasks, pod groups and queues, one table each."""
