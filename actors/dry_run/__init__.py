# SPDX-License-Identifier: Apache-2.0
"""Trial preemption, fanned out over workers."""
