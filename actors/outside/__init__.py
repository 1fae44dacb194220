# SPDX-License-Identifier: Apache-2.0
"""Processes outside that a cycle asks: see `client.py`."""
