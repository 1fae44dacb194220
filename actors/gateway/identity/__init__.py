# SPDX-License-Identifier: Apache-2.0
"""The sender of a request and the sender's rights: tokens, certificates, impersonation and roles."""
