# SPDX-License-Identifier: Apache-2.0
"""The extension points, a module a family: the form of a plugin's rule, and how the rules of all are merged."""
