"""What the predicates and nodeorder plugins share of kube-scheduler.

Labels, selectors, taints, allocatable, what runs where.
"""
