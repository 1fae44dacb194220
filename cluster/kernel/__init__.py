# SPDX-License-Identifier: Apache-2.0
"""The kernel: one cluster as one object, driven by a shell."""
