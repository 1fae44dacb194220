# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' own scheduler: it places pods that name it, one at a time, by its default profile."""
