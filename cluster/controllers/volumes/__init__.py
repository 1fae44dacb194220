# SPDX-License-Identifier: Apache-2.0
"""Claims get volumes, and pods the claims that they bring along."""
