# SPDX-License-Identifier: Apache-2.0
"""Questions and reports about a cluster or a record."""
