# SPDX-License-Identifier: Apache-2.0
"""The bind storm: the real actors on virtual time, faults from a seed, invariants after every event."""
