# SPDX-License-Identifier: Apache-2.0
"""Advice for a waiting job: changes that were tried, each by deciding the cycle again with it."""
