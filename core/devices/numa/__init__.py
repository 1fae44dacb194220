# SPDX-License-Identifier: Apache-2.0
"""CPUs of NUMA cells: the CPUs that a container gets, and whether a node's topology manager would admit it.

Source: Volcano `plugins/numaaware`, `api/numa_info.go`; Kubernetes' kubelet (`cm/cpumanager`, `cm/topologymanager`).
"""
