# SPDX-License-Identifier: Apache-2.0
"""Real clusters: followed, and scheduled from here."""
