# SPDX-License-Identifier: Apache-2.0
"""Volcano Jobs: their pods and PodGroups, policies, retries, and their end."""
