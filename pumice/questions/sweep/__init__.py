# SPDX-License-Identifier: Apache-2.0
"""Sweeps: the same question about many configurations, seeds, traces and sizes, as one table."""
