# SPDX-License-Identifier: Apache-2.0
"""The page of a run or of a journal in a browser."""
