"""CPUs of NUMA cells: which a container gets, and whether a node's topology manager would let it in.

| file | what |
|---|---|
| topology.py | `Numatopology` objects, sets of CPUs |
| taking.py | CPUs by topology: whole sockets, whole cores, then single ones |
| go_sort.py | the order in which Go leaves what it sorts |
| hints.py | on which cells a request fits, and what each policy makes of it |
| asking.py | pods of quality Guaranteed, and the CPUs that each container asks for |

Source: Volcano `plugins/numaaware`, `api/numa_info.go`; Kubernetes' kubelet (`cm/cpumanager`, `cm/topologymanager`).
"""
