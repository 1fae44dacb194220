# SPDX-License-Identifier: Apache-2.0
"""CEL, as far as device selectors and rules of definitions need it."""
