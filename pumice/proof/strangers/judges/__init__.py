# SPDX-License-Identifier: Apache-2.0
"""Judges: pure functions of a history of the API, one family of invariants a module."""
