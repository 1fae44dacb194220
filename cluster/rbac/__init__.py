# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' role-based access control as pure functions: who may do what, by roles and their bindings."""
