# SPDX-License-Identifier: Apache-2.0
"""Comparison of two futures: a state is simulated on virtual time, once as it is and once changed."""
