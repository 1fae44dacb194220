# SPDX-License-Identifier: Apache-2.0
"""The parts of kube-scheduler that the predicates and nodeorder plugins share.

Labels, selectors, taints, allocatable, what runs where.
"""
