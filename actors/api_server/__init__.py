# SPDX-License-Identifier: Apache-2.0
"""The api server as an actor, and its faults."""
