# SPDX-License-Identifier: Apache-2.0
"""Cards that pods share: pure models of a node's cards and of their users. One folder a family.

A family reads its cards from a node and its requests from a pod, says whether and how they fit, and keeps who has what
as pods come and go. It knows no session; `core.plugins.device_plugin` brings them together. `family.py` has what they
have in common.
"""
