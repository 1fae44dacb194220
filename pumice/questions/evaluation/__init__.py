# SPDX-License-Identifier: Apache-2.0
"""Evaluations: how good a policy is on workloads, by figures over seeds; and results kept by content."""
