# SPDX-License-Identifier: Apache-2.0
"""Explanation of why a pod is pending, placed where it is, or evicted: one recorded cycle decided again, and
watched."""
