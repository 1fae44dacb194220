# SPDX-License-Identifier: Apache-2.0
"""Estimates of when a waiting job will start, as a range: futures sampled from the known running times of pods."""
