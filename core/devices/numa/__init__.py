"""CPUs of NUMA cells: which a container gets, and whether a node's topology manager would let it in.

Source: Volcano `plugins/numaaware`, `api/numa_info.go`; Kubernetes' kubelet (`cm/cpumanager`, `cm/topologymanager`).
"""
