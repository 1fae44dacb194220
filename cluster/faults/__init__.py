# SPDX-License-Identifier: Apache-2.0
"""Faults that clients of the served API meet: their rules as data, and the choice of the fault that strikes."""
