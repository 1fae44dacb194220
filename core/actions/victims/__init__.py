# SPDX-License-Identifier: Apache-2.0
"""Candidates for eviction for a task, and the nodes to try."""
