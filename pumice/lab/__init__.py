# SPDX-License-Identifier: Apache-2.0
"""`import pumice`: clusters, workloads and their futures as Python objects, without a process, a file or an event loop.

import pumice

cluster = pumice.Cluster(pumice.nodes(4, cpu=8, gpu=2))
cluster.submit(pumice.gang("train", pods=8, gpu=1, duration="10m"))
print(cluster.step().binds)
print(cluster.run("idle").summary["makespan_s"])
"""
