# SPDX-License-Identifier: Apache-2.0
"""Traces: workloads in which jobs come and end at recorded times, as Volcano Jobs with `pumice.dev/arrival`."""
