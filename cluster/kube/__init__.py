"""What several actors need of Kubernetes' own conventions, as pure functions on objects."""
