# SPDX-License-Identifier: Apache-2.0
"""A real API server, followed as client-go follows it: credentials, requests, lists, watches."""
