# SPDX-License-Identifier: Apache-2.0
"""The end of a session: its writes and its report."""
