# SPDX-License-Identifier: Apache-2.0
"""Actors that host machines of the cluster."""
