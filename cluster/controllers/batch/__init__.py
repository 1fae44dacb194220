# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' own Jobs (batch/v1)."""
