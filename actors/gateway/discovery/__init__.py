# SPDX-License-Identifier: Apache-2.0
"""Facts about the server: its kinds, their schemas, its version."""
