# SPDX-License-Identifier: Apache-2.0
"""Admission webhooks: those to ask about a request over HTTP, and their answers."""
