# SPDX-License-Identifier: Apache-2.0
"""Decisions carried out: binds, evictions, statuses."""
