# SPDX-License-Identifier: Apache-2.0
"""Searches for the smallest change that lets a job start; see `starting`."""
