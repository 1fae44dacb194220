# SPDX-License-Identifier: Apache-2.0
"""The main job: the whole system in one process, from manifests to the requested end."""
