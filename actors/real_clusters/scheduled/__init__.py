# SPDX-License-Identifier: Apache-2.0
"""A real cluster that is scheduled from here: followed, and written to."""
