"""Controllers: Volcano jobs, pod groups of plain pods, queues."""
