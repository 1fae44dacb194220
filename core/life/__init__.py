# SPDX-License-Identifier: Apache-2.0
"""Life cycles of tasks and PodGroups, and the form of every life cycle: one table each."""
