# SPDX-License-Identifier: Apache-2.0
"""Proof: storms, benchmarks, conformance."""
