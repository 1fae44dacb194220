# SPDX-License-Identifier: Apache-2.0
"""State of the scheduler: specs shared, columns copied."""
