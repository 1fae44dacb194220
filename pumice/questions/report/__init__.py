# SPDX-License-Identifier: Apache-2.0
"""A run as one HTML file that opens anywhere: the pods, waiting jobs with reasons, resource use, evictions."""
