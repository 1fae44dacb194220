# SPDX-License-Identifier: Apache-2.0
"""Answers for agents: read-only tools over a cluster; each is a command of Pumice."""
