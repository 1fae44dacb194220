# SPDX-License-Identifier: Apache-2.0
"""Tasks of a job onto nodes: group by group, domain by domain."""
