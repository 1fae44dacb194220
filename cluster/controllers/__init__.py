# SPDX-License-Identifier: Apache-2.0
"""Controllers: Volcano jobs, pod groups of plain pods, queues."""
