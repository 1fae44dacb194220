# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' conventions that several actors need, as pure functions on objects."""
