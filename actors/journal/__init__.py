# SPDX-License-Identifier: Apache-2.0
"""The journal's only writers: records and checkpoints."""
