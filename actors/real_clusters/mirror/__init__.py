# SPDX-License-Identifier: Apache-2.0
"""A real cluster in the api of this process: its objects, and the decisions of its own scheduler."""
