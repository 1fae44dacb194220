"""The parts of kube-scheduler that the predicates and nodeorder plugins share.

Labels, selectors, taints, allocatable, what runs where.
"""
