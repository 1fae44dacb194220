# SPDX-License-Identifier: Apache-2.0
"""Scheduling cycles in this process, without actors: the common part of `decide` and `conformance`."""
