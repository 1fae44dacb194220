# SPDX-License-Identifier: Apache-2.0
"""The scheduler's view, and a cycle from snapshot to commit."""
