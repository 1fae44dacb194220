# SPDX-License-Identifier: Apache-2.0
"""The wiring: actors, the sends between them, and how a system is set up, started and recovered."""
