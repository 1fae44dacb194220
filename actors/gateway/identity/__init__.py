# SPDX-License-Identifier: Apache-2.0
"""Who sends a request, and whether that user may: tokens, certificates, impersonation and roles."""
