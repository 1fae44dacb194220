# SPDX-License-Identifier: Apache-2.0
"""Faults between a client and the gateway: who is struck is decided in `pumice.cluster.faults`, and done here."""
