# SPDX-License-Identifier: Apache-2.0
"""CustomResourceDefinitions: their validity, the kind that each defines, and the requirements of its schema on
objects.
"""
