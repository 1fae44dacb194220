# SPDX-License-Identifier: Apache-2.0
"""Readers of input files: manifests, `kubectl` dumps, traces."""
