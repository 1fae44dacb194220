# SPDX-License-Identifier: Apache-2.0
"""One scheduling cycle: extension points, tiers, statement, heap."""
