# SPDX-License-Identifier: Apache-2.0
"""Volcano's metrics, and the summary of a run."""
