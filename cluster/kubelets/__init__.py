# SPDX-License-Identifier: Apache-2.0
"""The kubelets of all nodes.

A pod that is bound starts, runs for its `pumice.dev/duration` and ends with its `pumice.dev/exit-code`; one that is
deleted takes its `pumice.dev/termination` to stop, its grace period at most, and is Failed or Succeeded before it goes.
After a restart a running pod goes on from the start time that the api has of it. A node with the annotation
`pumice.dev/devices` (`pumice.core.objects.node_devices`) has device plugins and a resource exporter as well.
"""
