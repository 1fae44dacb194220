"""The soak: hours of churn against a `pumice run --http` in a process of its own, and whether anything grows."""
