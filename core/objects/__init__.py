# SPDX-License-Identifier: Apache-2.0
"""Kubernetes dictionaries read into immutable specs."""
