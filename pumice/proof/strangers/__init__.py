# SPDX-License-Identifier: Apache-2.0
"""Storms for schedulers and controllers of others: a served cluster, faults, and judges of what came of it."""
