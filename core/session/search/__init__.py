"""Where may a task go, and where does it go: filters and scores of one kind of task."""
