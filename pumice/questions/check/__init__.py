# SPDX-License-Identifier: Apache-2.0
"""Effects of a scheduler configuration, and its settings that will have none."""
