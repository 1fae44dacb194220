# SPDX-License-Identifier: Apache-2.0
"""Answers for agents: read-only tools over a cluster, each of which is a command of Pumice."""
