# SPDX-License-Identifier: Apache-2.0
"""Plugins of Volcano's Job controller: their additions to a Job's pods, and the objects that they create."""
