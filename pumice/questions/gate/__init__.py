# SPDX-License-Identifier: Apache-2.0
"""The gate compares two policies under the same workloads, and checks expectations of a change."""
