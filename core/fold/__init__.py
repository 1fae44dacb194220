# SPDX-License-Identifier: Apache-2.0
"""Folding changes into the scheduler's view: as the cache does it immediately, and as replays do it later."""
