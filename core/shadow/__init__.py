# SPDX-License-Identifier: Apache-2.0
"""A cycle beside that of another scheduler on the same state, and the differences of the two."""
