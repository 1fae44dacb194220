# SPDX-License-Identifier: Apache-2.0
"""Invariants of a storm: the monitor and its books."""
