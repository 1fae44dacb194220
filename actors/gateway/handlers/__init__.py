# SPDX-License-Identifier: Apache-2.0
"""Handlers of requests: one module for each sort."""
