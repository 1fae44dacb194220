"""fgd, bestfit, dotprod, gpuclustering, gpupacking: which node, by what a pod leaves of its cards and CPU.

Source: "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent" (USENIX ATC
2023). The cards are deviceshare's virtual GPUs.

| file | what |
|---|---|
| columns.py | the session's cards in thousandths, and what pods ask of them |
| keeping.py | scores by class of pod, kept until a node is touched |
| policies.py | the five policies |
| plugin.py | arguments, what is registered where |
"""

from pumice.core.plugins.card_policies.plugin import BestFit, Clustering, DotProd, Fgd, GpuPacking

__all__ = ["BestFit", "Clustering", "DotProd", "Fgd", "GpuPacking"]
