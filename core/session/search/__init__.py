# SPDX-License-Identifier: Apache-2.0
"""The search for the node of a task: filters and scores of one kind of task."""
