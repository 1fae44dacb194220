# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' protobuf encoding, read and written by the schema table."""
